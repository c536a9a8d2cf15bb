/**
 * The library's reference as Markdown: what src/index.ts exports, its types and its docstrings, as the compiler sees
 * them. Limit: it rests on TypeScript 7's API, which calls itself unstable; typedoc does not know TypeScript 7 yet.
 */
import { fileURLToPath } from "node:url";
import { API, SignatureKind, SymbolFlags, TypeFlags } from "typescript/unstable/sync";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const ENTRY = `${ROOT}src/index.ts`;
/** As in `ts.TypeFormatFlags`: not truncated, double quotes, and an alias' definition instead of its name. */
const WHOLE = 1;
const DEFINITION = WHOLE | 8_388_608;

const SECTIONS = [
  [
    "Delegating",
    /^(?:Delegator|Delegate|Get|Wait|Watch|List|Cancel|Result|EventFilter|Answer(?:s|Body)?$|Batch|Branch|Bulk|Control|Decide|Instant)/,
  ],
  ["Working", /^(?:Agent|Work|Handler|Outcome|Reply|Chunk|Lost|Lease|Ask|Answered|Question|Parked)/],
  ["Being called back", /^(?:verifyCallback|Verify|Callback)/],
  ["Setting up", /^(?:Admin|AgentInput|AgentInfo|NewToken|TokenInfo|CallOptions|Presence)/],
  ["Connections and errors", /^(?:Connection|ErrandApi|Category)/],
  ["What is handed around", /./],
];
const ANY_OBJECT = /^(?:Record<string, unknown>|\{ \[\w+: string\]: unknown; \})$/;
const SETTING_UP = ["AgentInput", "AgentInfo"];

export function apiReference() {
  const api = new API({ cwd: ROOT });
  try {
    const snapshot = api.updateSnapshot({ openFiles: [ENTRY] });
    const project = snapshot.getDefaultProjectForFile(ENTRY);
    return new Reference(project.checker, project.program.getSourceFile(ENTRY)).text();
  } finally {
    api.close();
  }
}

class Reference {
  #checker;
  #exports;
  /** Exported shapes as the compiler prints them, with their names; longest first. */
  #spelled;

  constructor(checker, file) {
    this.#checker = checker;
    const module = checker.getSymbolAtLocation(file);
    this.#exports = checker.getExportsOfModule(module).map((symbol) => {
      const target = symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      return { name: symbol.name, symbol: target };
    });
    this.#spelled = this.#exports
      .filter(({ symbol }) => symbol.flags & SymbolFlags.TypeAlias)
      .map(({ name, symbol }) => [
        checker.typeToString(checker.getDeclaredTypeOfSymbol(symbol), undefined, WHOLE),
        name,
      ])
      // Any JSON object has the shape of those without named members.
      .filter(([spelled, name]) => spelled !== name && spelled.length > 20 && !ANY_OBJECT.test(spelled))
      .sort(([a], [b]) => b.length - a.length);
  }

  text() {
    const left = new Set(this.#exports);
    const sections = SECTIONS.map(([title, wanted]) => {
      const found = [...left].filter(
        ({ name }) => wanted.test(name) && (title === "Setting up" || !SETTING_UP.includes(name)),
      );
      for (const one of found) left.delete(one);
      // Classes first; the rest are their parameters and results.
      const rank = ({ symbol }) => (symbol.flags & SymbolFlags.Class ? 0 : 1);
      return `## ${title}\n\n${found
        .sort((a, b) => rank(a) - rank(b))
        .map((one) => this.#entry(one))
        .join("\n\n")}`;
    });
    return sections.join("\n\n");
  }

  #entry({ name, symbol }) {
    const head = `### \`${name}\``;
    const body = this.#body(name, symbol);
    return [head, this.#docs(symbol), body].filter(Boolean).join("\n\n");
  }

  #body(name, symbol) {
    const checker = this.#checker;
    if (symbol.flags & SymbolFlags.Class) return this.#class(name, symbol);
    if (symbol.flags & SymbolFlags.Function) {
      return fence(`function ${name}${this.#signature(checker.getTypeOfSymbol(symbol))}`);
    }
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    const isCalled = checker.getSignaturesOfType(type, SignatureKind.Call).length > 0;
    if (type.flags & TypeFlags.Object && !isCalled) return this.#rows(this.#properties(type));
    return fence(`type ${name} =${broken(this.#spell(type, DEFINITION, name))}`);
  }

  #class(name, symbol) {
    const checker = this.#checker;
    const [made] = checker.getSignaturesOfType(checker.getTypeOfSymbol(symbol), SignatureKind.Construct);
    const members = this.#properties(checker.getDeclaredTypeOfSymbol(symbol));
    const isMethod = (member) => (member.flags & SymbolFlags.Method) !== 0;
    const fields = members.filter((member) => !isMethod(member) && !INHERITED.includes(member.name));
    const making = symbol.getMembers().get("__constructor");
    const parts = [];
    if (made && (!fields.length || (making && this.#docs(making)))) {
      const given = made.getParameters().map((parameter) => this.#parameter(parameter));
      parts.push(fence(`new ${name}(${given.join(", ")})`), making && this.#docs(making));
    }
    if (fields.length > 0) parts.push(this.#rows(fields));
    for (const member of members.filter(isMethod)) {
      const type = checker.getTypeOfSymbol(member);
      parts.push(
        `#### \`${name}.${member.name}\``,
        fence(`${member.name}${this.#signature(type)}`),
        this.#docs(member),
      );
    }
    return parts.filter(Boolean).join("\n\n");
  }

  #parameter(symbol) {
    const spelled = this.#spell(this.#checker.getTypeOfSymbol(symbol), WHOLE);
    const isOptional = / \| undefined$/.test(spelled) || symbol.valueDeclaration?.resolve()?.initializer;
    const name = symbol.name.startsWith("__") ? "options" : symbol.name;
    return `${name}${isOptional ? "?" : ""}: ${spelled.replace(/ \| undefined$/, "")}`;
  }

  /** `(a: A) => B` in the form of a declaration: `(a: A): B`. */
  #signature(type) {
    const [signature] = this.#checker.getSignaturesOfType(type, SignatureKind.Call);
    const given = signature.getParameters().map((parameter) => this.#parameter(parameter));
    return `(${given.join(", ")}): ${this.#spell(this.#checker.getReturnTypeOfSignature(signature), WHOLE)}`;
  }

  #properties(type) {
    return this.#checker.getPropertiesOfType(type).filter(({ name }) => !/^(?:#|__#|�)|@/.test(name));
  }

  #rows(properties) {
    const rows = properties.map((property) => {
      const isOptional = property.flags & SymbolFlags.Optional;
      const type = this.#checker.getTypeOfSymbol(property);
      const spelled =
        property.flags & SymbolFlags.Method ? this.#signature(type) : this.#member(property.name, type);
      const docs = this.#docs(property)
        .replace(/\n+```[\s\S]*?```/g, "")
        .replaceAll("\n", " ");
      const shown = isOptional ? spelled.replace(/ \| undefined$/, "") : spelled;
      return `| \`${property.name}${isOptional ? "?" : ""}\` | \`${shown.replaceAll("|", "\\|")}\` | ${docs.replaceAll("|", "\\|")} |`;
    });
    return ["| | type | |", "| --- | --- | --- |", ...rows].join("\n");
  }

  /** The global's two overloads add nothing. */
  #member(name, type) {
    return name === "fetch" ? "typeof fetch" : this.#spell(type, WHOLE);
  }

  #docs(symbol) {
    const examples = symbol
      .getJsDocTags(this.#checker)
      .filter(({ name }) => name === "example")
      .map(({ text }) => text);
    return [symbol.getDocumentationComment(this.#checker).trim(), ...examples].filter(Boolean).join("\n\n");
  }

  /** Replaces shapes that have a name by their name. */
  #spell(type, flags, except) {
    let spelled = this.#checker.typeToString(type, undefined, flags);
    for (const [whole, name] of this.#spelled) {
      if (name !== except) spelled = spelled.replaceAll(whole, name);
    }
    return spelled.replaceAll(", void, any>", ">").replaceAll(/\((\w+)\)\[\]/g, "$1[]");
  }
}

const INHERITED = ["name", "message", "stack", "cause"];
const fence = (code) => `\`\`\`ts\n${code}\n\`\`\``;

/** A union with shapes in it, one member on each line. */
function broken(spelled) {
  const members = [""];
  let depth = 0;
  for (const piece of spelled.split(/( \| |[{}()])/)) {
    if (piece === "{" || piece === "(") depth += 1;
    if (piece === "}" || piece === ")") depth -= 1;
    if (piece === " | " && depth === 0) members.push("");
    else members[members.length - 1] += piece;
  }
  return spelled.includes("{") ? `\n  | ${members.join("\n  | ")}` : ` ${spelled}`;
}
