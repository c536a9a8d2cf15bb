/**
 * Completion scripts for bash, zsh and fish. Each walks the words of the line to find the command, then offers its
 * subcommands and options. After `--`, the shell's own completion takes over.
 */
import type { CommandSpec, OptionSpec, OptionValue } from "./command-specs.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export function scriptFor(shell: Shell, specs: readonly CommandSpec[]): string {
  return { bash, zsh, fish }[shell](specs);
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const deeper = (specs: readonly CommandSpec[]): string[] => specs.slice(1).map(({ path }) => quoted(path));
/** Keys such as `errand get --timeout`, for the options whose value is of a certain kind. */
const valued = (specs: readonly CommandSpec[], fits: (value: OptionValue) => boolean): string[] =>
  specs.flatMap(({ path, options }) =>
    options
      .filter(({ value }) => fits(value))
      .flatMap(({ flags }) => flags.map((flag) => quoted(`${path} ${flag}`))),
  );
const choices = (specs: readonly CommandSpec[]): [string, readonly string[]][] =>
  specs.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) =>
      typeof value === "string"
        ? []
        : flags.map((flag): [string, readonly string[]] => [`${path} ${flag}`, value]),
    ),
  );
const wordsOf = ({ commands, options, words }: CommandSpec): string[] => [
  ...commands.map(({ name }) => name),
  ...words,
  ...options.flatMap(({ flags }) => flags),
];

function bash(specs: readonly CommandSpec[]): string {
  return `# bash completion for errand; made by 'errand completion bash'
_errand() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at=errand words= index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    [[ \${COMP_WORDS[index]} == -- ]] && return
    case "$at \${COMP_WORDS[index]}" in
      ${deeper(specs).join("|")}) at="$at \${COMP_WORDS[index]}" ;;
    esac
  done
  case "$at $previous" in
${choices(specs)
  .map(
    ([key, words]) =>
      `    ${quoted(key)}) COMPREPLY=($(compgen -W ${quoted(words.join(" "))} -- "$current")); return ;;`,
  )
  .join("\n")}
    ${valued(specs, (value) => value === "file").join("|")}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${valued(specs, (value) => value === "anything").join("|")}) return ;;
  esac
  case "$at" in
${specs.map((spec) => `    ${quoted(spec.path)}) words=${quoted(wordsOf(spec).join(" "))} ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _errand errand
`;
}

function zsh(specs: readonly CommandSpec[]): string {
  const entry = (name: string, description: string) =>
    quoted(`${name.replaceAll(":", "\\:")}:${description}`);
  const entries = ({ commands, options, words }: CommandSpec) => [
    ...commands.map(({ name, description }) => entry(name, description)),
    ...words.map((word) => entry(word, "")),
    ...options.flatMap(({ flags, description }) => flags.map((flag) => entry(flag, description))),
  ];
  return `#compdef errand
# zsh completion for errand; made by 'errand completion zsh'
_errand() {
  local at=errand index
  local -a offered
  for ((index = 2; index < CURRENT; index++)); do
    [[ $words[index] == -- ]] && { _default; return }
    case "$at $words[index]" in
      (${deeper(specs).join("|")}) at="$at $words[index]" ;;
    esac
  done
  case "$at $words[CURRENT-1]" in
${choices(specs)
  .map(([key, words]) => `    (${quoted(key)}) compadd -- ${words.map(quoted).join(" ")}; return ;;`)
  .join("\n")}
    (${valued(specs, (value) => value === "file").join("|")}) _files; return ;;
    (${valued(specs, (value) => value === "anything").join("|")}) return ;;
  esac
  case "$at" in
${specs.map((spec) => `    (${quoted(spec.path)}) offered=(${entries(spec).join(" ")}) ;;`).join("\n")}
  esac
  _describe errand offered
}
if [[ $funcstack[1] == _errand ]]; then _errand "$@"; else compdef _errand errand; fi
`;
}

function fish(specs: readonly CommandSpec[]): string {
  const escaped = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const at = (path: string) => `complete -c errand -n ${escaped(`__errand_at ${path}`)}`;
  const option = ({ flags, description, value }: OptionSpec): string => {
    const names = flags.map((flag) =>
      flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
    );
    const kinds = { nothing: "", file: " -rF", anything: " -x" };
    const valueFlags = typeof value === "string" ? kinds[value] : ` -xa ${escaped(value.join(" "))}`;
    return `${names.join(" ")}${valueFlags} -d ${escaped(description)}`;
  };
  const lines = specs.flatMap(({ path, commands, options, words }) => [
    ...commands.map(({ name, description }) => `${at(path)} -fa ${name} -d ${escaped(description)}`),
    ...words.map((word) => `${at(path)} -fa ${word}`),
    ...options.map((one) => `${at(path)} ${option(one)}`),
  ]);
  return `# fish completion for errand; made by 'errand completion fish'
function __errand_at
  set -l at errand
  for word in (commandline -opc)[2..-1]
    test $word = --; and return 1
    contains -- "$at $word" ${deeper(specs).join(" ")}; and set at "$at $word"
  end
  test "$at" = "$argv"
end
${lines.join("\n")}
`;
}
