/**
 * Completion scripts for bash, zsh and fish. Each walks the words of the line to find the command, then offers its
 * subcommands and options. After `--` the shell's own completion takes over.
 */
import type { Place, PlaceOption, Takes } from "./places.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export function scriptFor(shell: Shell, places: readonly Place[]): string {
  return { bash, zsh, fish }[shell](places);
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const deeper = (places: readonly Place[]): string[] => places.slice(1).map(({ path }) => quoted(path));
/** Keys such as `errand get --timeout`, for options with a value of some kind. */
const valued = (places: readonly Place[], fits: (takes: Takes) => boolean): string[] =>
  places.flatMap(({ path, options }) =>
    options
      .filter(({ takes }) => fits(takes))
      .flatMap(({ flags }) => flags.map((flag) => quoted(`${path} ${flag}`))),
  );
const choices = (places: readonly Place[]): [string, readonly string[]][] =>
  places.flatMap(({ path, options }) =>
    options.flatMap(({ flags, takes }) =>
      typeof takes === "string"
        ? []
        : flags.map((flag): [string, readonly string[]] => [`${path} ${flag}`, takes]),
    ),
  );
const wordsOf = ({ commands, options, words }: Place): string[] => [
  ...commands.map(({ name }) => name),
  ...words,
  ...options.flatMap(({ flags }) => flags),
];

function bash(places: readonly Place[]): string {
  return `# bash completion for errand; made by 'errand completion bash'
_errand() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at=errand words= index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    [[ \${COMP_WORDS[index]} == -- ]] && return
    case "$at \${COMP_WORDS[index]}" in
      ${deeper(places).join("|")}) at="$at \${COMP_WORDS[index]}" ;;
    esac
  done
  case "$at $previous" in
${choices(places)
  .map(
    ([key, words]) =>
      `    ${quoted(key)}) COMPREPLY=($(compgen -W ${quoted(words.join(" "))} -- "$current")); return ;;`,
  )
  .join("\n")}
    ${valued(places, (takes) => takes === "file").join("|")}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${valued(places, (takes) => takes === "anything").join("|")}) return ;;
  esac
  case "$at" in
${places.map((place) => `    ${quoted(place.path)}) words=${quoted(wordsOf(place).join(" "))} ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _errand errand
`;
}

function zsh(places: readonly Place[]): string {
  const entry = (name: string, about: string) => quoted(`${name.replaceAll(":", "\\:")}:${about}`);
  const entries = ({ commands, options, words }: Place) => [
    ...commands.map(({ name, about }) => entry(name, about)),
    ...words.map((word) => entry(word, "")),
    ...options.flatMap(({ flags, about }) => flags.map((flag) => entry(flag, about))),
  ];
  return `#compdef errand
# zsh completion for errand; made by 'errand completion zsh'
_errand() {
  local at=errand index
  local -a offered
  for ((index = 2; index < CURRENT; index++)); do
    [[ $words[index] == -- ]] && { _default; return }
    case "$at $words[index]" in
      (${deeper(places).join("|")}) at="$at $words[index]" ;;
    esac
  done
  case "$at $words[CURRENT-1]" in
${choices(places)
  .map(([key, words]) => `    (${quoted(key)}) compadd -- ${words.map(quoted).join(" ")}; return ;;`)
  .join("\n")}
    (${valued(places, (takes) => takes === "file").join("|")}) _files; return ;;
    (${valued(places, (takes) => takes === "anything").join("|")}) return ;;
  esac
  case "$at" in
${places.map((place) => `    (${quoted(place.path)}) offered=(${entries(place).join(" ")}) ;;`).join("\n")}
  esac
  _describe errand offered
}
if [[ $funcstack[1] == _errand ]]; then _errand "$@"; else compdef _errand errand; fi
`;
}

function fish(places: readonly Place[]): string {
  const escaped = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const at = (path: string) => `complete -c errand -n ${escaped(`__errand_at ${path}`)}`;
  const option = ({ flags, about, takes }: PlaceOption): string => {
    const names = flags.map((flag) =>
      flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
    );
    const value = { nothing: "", file: " -rF", anything: " -x" };
    const taken = typeof takes === "string" ? value[takes] : ` -xa ${escaped(takes.join(" "))}`;
    return `${names.join(" ")}${taken} -d ${escaped(about)}`;
  };
  const lines = places.flatMap(({ path, commands, options, words }) => [
    ...commands.map(({ name, about }) => `${at(path)} -fa ${name} -d ${escaped(about)}`),
    ...words.map((word) => `${at(path)} -fa ${word}`),
    ...options.map((one) => `${at(path)} ${option(one)}`),
  ]);
  return `# fish completion for errand; made by 'errand completion fish'
function __errand_at
  set -l at errand
  for word in (commandline -opc)[2..-1]
    test $word = --; and return 1
    contains -- "$at $word" ${deeper(places).join(" ")}; and set at "$at $word"
  end
  test "$at" = "$argv"
end
${lines.join("\n")}
`;
}
