"""Long attacks on prnas: what the tests do for seconds, for as long as one likes."""
