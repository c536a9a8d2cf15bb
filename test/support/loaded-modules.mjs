/** With --import: writes into the file LOADED_MODULES the URL of every module that the program loads, and Node's own. */
import { appendFileSync } from "node:fs";
import { register } from "node:module";

const file = process.env.LOADED_MODULES;
const hook = `import { appendFileSync } from "node:fs";
export function load(url, context, next) {
  appendFileSync(${JSON.stringify(file)}, url + "\\n");
  return next(url, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
process.on("exit", () => appendFileSync(file, `${process.moduleLoadList.join("\n")}\n`));
