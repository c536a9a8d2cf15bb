/**
 * Completion scripts for bash, zsh and fish. Each walks the words of the line to find the command, then offers its
 * arguments, subcommands and options; agents and delegations come from `errand completion --list`. After `--`, the
 * shell's own completion takes over.
 */
import type { CommandSpec, OptionSpec, OptionValue } from "./command-specs.ts";
import { LISTINGS, type Listing } from "./listings.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** `program`: the file to run where `errand` is not on the PATH. */
export function scriptFor(shell: Shell, specs: readonly CommandSpec[], program = "errand"): string {
  return { bash, zsh, fish }[shell](specs, program);
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const subcommands = (specs: readonly CommandSpec[]): string[] =>
  specs.slice(1).map(({ path }) => quoted(path));
/** Keys such as `errand get --timeout`, for the options whose value is of a certain kind. */
const valued = (specs: readonly CommandSpec[], fits: (value: OptionValue) => boolean): string[] =>
  specs.flatMap(({ path, options }) =>
    options
      .filter(({ value }) => fits(value))
      .flatMap(({ flags }) => flags.map((flag) => quoted(`${path} ${flag}`))),
  );
const withValue = (specs: readonly CommandSpec[]): string[] => valued(specs, (value) => value !== "nothing");
type Choices = readonly [key: string, words: readonly string[], isList: boolean];
const choices = (specs: readonly CommandSpec[]): Choices[] =>
  specs.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value, isList }) =>
      typeof value === "string" ? [] : flags.map((flag): Choices => [`${path} ${flag}`, value, isList]),
    ),
  );
const isListing = (value: unknown): value is Listing => LISTINGS.some((one) => one === value);
/** Each listing with the keys of the options whose value it is. */
const listings = (specs: readonly CommandSpec[]): [Listing, string[]][] =>
  LISTINGS.flatMap((listing): [Listing, string[]][] => {
    const keys = valued(specs, (value) => value === listing);
    return keys.length > 0 ? [[listing, keys]] : [];
  });
const wordsOf = ({ commands, options, words }: CommandSpec): string[] => [
  ...commands.map(({ name }) => name),
  ...words,
  ...options.flatMap(({ flags }) => flags),
];
/** `errand get 0`: the command and how many arguments are before; any number if the argument is repeated. */
const places = (specs: readonly CommandSpec[], value: "file" | Listing): string[] =>
  specs.flatMap(({ path, argument }) =>
    argument?.value === value ? [`${quoted(`${path} `)}${argument.isRepeated ? "*" : "0"}`] : [],
  );
/** The broker's listings, and files, with the places where they are offered. */
const argumentsOf = (specs: readonly CommandSpec[]): ["file" | Listing, string[]][] =>
  (["file", ...LISTINGS] as const).flatMap((value): ["file" | Listing, string[]][] => {
    const found = places(specs, value);
    return found.length > 0 ? [[value, found]] : [];
  });

function bash(specs: readonly CommandSpec[], program: string): string {
  return `# bash completion for errand; made by 'errand completion bash'
_errand_offer() {
  local word
  while IFS=$'\\t' read -r word _; do
    [[ $word == "$current"* ]] && COMPREPLY+=("$word")
  done < <(
    if type -P errand >/dev/null; then command errand completion --list "$1"
    else node ${quoted(program)} completion --list "$1"; fi 2>/dev/null
  )
}
# One more of several words, which commas separate.
_errand_list() {
  local before=
  [[ $current == *,* ]] && before=\${current%,*},
  COMPREPLY=($(compgen -P "$before" -W "$1" -- "\${current##*,}"))
  compopt -o nospace 2>/dev/null
}
_errand() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous= at=errand count=0 words= word index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    [[ $word == -- ]] && return
    case "$at $previous" in
      ${withValue(specs).join("|")}) previous=; continue ;;
    esac
    previous=$word
    case "$at $word" in
      ${subcommands(specs).join("|")}) at="$at $word" ;;
      *" "-*) ;;
      *) count=$((count + 1)) ;;
    esac
  done
  case "$at $previous" in
${choices(specs)
  .map(
    ([key, words, isList]) =>
      `    ${quoted(key)}) ${isList ? `_errand_list ${quoted(words.join(" "))}` : `COMPREPLY=($(compgen -W ${quoted(words.join(" "))} -- "$current"))`}; return ;;`,
  )
  .join("\n")}
${listings(specs)
  .map(([listing, keys]) => `    ${keys.join("|")}) _errand_offer ${listing}; return ;;`)
  .join("\n")}
    ${valued(specs, (value) => value === "file").join("|")}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${valued(specs, (value) => value === "anything").join("|")}) return ;;
  esac
  [[ $current == -* ]] || case "$at $count" in
${argumentsOf(specs)
  .map(([value, found]) => {
    const offer = value === "file" ? `COMPREPLY=($(compgen -f -- "$current"))` : `_errand_offer ${value}`;
    return `    ${found.join("|")}) ${offer}; return ;;`;
  })
  .join("\n")}
  esac
  case "$at" in
${specs.map((spec) => `    ${quoted(spec.path)}) words=${quoted(wordsOf(spec).join(" "))} ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ \${#COMPREPLY[@]} != 1 || \${COMPREPLY[0]} != *: ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _errand errand
_errand_npx() {
  COMPREPLY=()
  [[ \${COMP_WORDS[1]} == errand-broker ]] && ((COMP_CWORD > 1)) || return
  COMP_WORDS=("\${COMP_WORDS[@]:1}")
  COMP_CWORD=$((COMP_CWORD - 1))
  _errand
}
complete -p npx &>/dev/null || complete -o default -F _errand_npx npx
`;
}

function zsh(specs: readonly CommandSpec[], program: string): string {
  const entry = (name: string, description: string) =>
    quoted(`${name.replaceAll(":", "\\:")}:${description}`);
  const entries = ({ commands, options, words }: CommandSpec) => [
    ...commands.map(({ name, description }) => entry(name, description)),
    ...words.map((word) => entry(word, "")),
    ...options.flatMap(({ flags, description }) => flags.map((flag) => entry(flag, description))),
  ];
  return `#compdef errand npx
# zsh completion for errand; made by 'errand completion zsh'
_errand_offer() {
  local tab=$'\\t'
  local -a lines
  lines=(\${(f)"$(
    if (( $+commands[errand] )); then command errand completion --list $1
    else node ${quoted(program)} completion --list $1; fi 2>/dev/null
  )"})
  lines=("\${(@)lines/$tab/:}")
  _describe -V $1 lines
}
_errand() {
  local at=errand previous= word index
  local -i count=0
  local -a offered
  if [[ $words[1] == npx ]]; then
    (( CURRENT > 2 )) && [[ $words[2] == errand-broker ]] || { _default; return }
    shift words
    (( CURRENT-- ))
  fi
  for ((index = 2; index < CURRENT; index++)); do
    word=$words[index]
    [[ $word == -- ]] && { _default; return }
    case "$at $previous" in
      (${withValue(specs).join("|")}) previous=; continue ;;
    esac
    previous=$word
    case "$at $word" in
      (${subcommands(specs).join("|")}) at="$at $word" ;;
      (*" "-*) ;;
      (*) (( count++ )) ;;
    esac
  done
  case "$at $previous" in
${choices(specs)
  .map(
    ([key, words, isList]) =>
      `    (${quoted(key)}) ${isList ? "compset -P '*,'; " : ""}compadd -- ${words.map(quoted).join(" ")}; return ;;`,
  )
  .join("\n")}
${listings(specs)
  .map(([listing, keys]) => `    (${keys.join("|")}) _errand_offer ${listing}; return ;;`)
  .join("\n")}
    (${valued(specs, (value) => value === "file").join("|")}) _files; return ;;
    (${valued(specs, (value) => value === "anything").join("|")}) return ;;
  esac
  [[ $words[CURRENT] == -* ]] || case "$at $count" in
${argumentsOf(specs)
  .map(([value, found]) => {
    const offer = value === "file" ? "_files" : `_errand_offer ${value}`;
    return `    (${found.join("|")}) ${offer}; return ;;`;
  })
  .join("\n")}
  esac
  case "$at" in
${specs.map((spec) => `    (${quoted(spec.path)}) offered=(${entries(spec).join(" ")}) ;;`).join("\n")}
  esac
  _describe errand offered
}
if [[ $funcstack[1] == _errand ]]; then _errand "$@"; else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _errand errand npx
fi
`;
}

function fish(specs: readonly CommandSpec[], program: string): string {
  const escaped = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const at = (path: string, ...more: string[]) =>
    `complete -c errand -n ${escaped([`__errand_at "${path}"`, ...more].join(" "))}`;
  const list = (listing: Listing) => escaped(`(__errand_list ${listing})`);
  const option = ({ flags, description, value, isList }: OptionSpec): string => {
    const names = flags.map((flag) =>
      flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
    );
    const kinds = { nothing: "", file: " -rF", anything: " -x" };
    const valueFlags = () => {
      if (isListing(value)) return ` -xka ${list(value)}`;
      if (typeof value === "string") return kinds[value];
      const words = value.join(" ");
      return ` -xa ${escaped(isList ? `(__errand_words ${words})` : words)}`;
    };
    return `${names.join(" ")}${valueFlags()} -d ${escaped(description)}`;
  };
  const argument = ({ path, argument: one }: CommandSpec): string[] => {
    if (one === undefined) return [];
    const place = one.isRepeated ? at(path) : at(path, "first");
    return [one.value === "file" ? `${place} -F` : `${place} -fka ${list(one.value)}`];
  };
  const lines = specs.flatMap((spec) => [
    ...spec.commands.map(
      ({ name, description }) => `${at(spec.path)} -fa ${name} -d ${escaped(description)}`,
    ),
    ...spec.words.map((word) => `${at(spec.path)} -fa ${word}`),
    ...argument(spec),
    ...spec.options.map((one) => `${at(spec.path)} ${option(one)}`),
  ]);
  return `# fish completion for errand; made by 'errand completion fish'
function __errand_list
  if command -sq errand
    command errand completion --list $argv 2>/dev/null
  else
    node ${escaped(program)} completion --list $argv 2>/dev/null
  end
end
# One more of several words, which commas separate.
function __errand_words
  set -l before (commandline -ct | string replace -r '[^,]*$' '')
  for word in $argv
    echo "$before$word"
  end
end
# Whether the command is this one; with 'first', and has no argument yet.
function __errand_at
  set -l at errand
  set -l count 0
  set -l previous ''
  for word in (commandline -opc)[2..-1]
    test $word = --; and return 1
    if contains -- "$at $previous" ${withValue(specs).join(" ")}
      set previous ''
      continue
    end
    set previous $word
    if contains -- "$at $word" ${subcommands(specs).join(" ")}
      set at "$at $word"
    else if not string match -q -- '-*' $word
      set count (math $count + 1)
    end
  end
  test "$at" = "$argv[1]"; and begin
    test (count $argv) = 1; or test $count = 0
  end
end
${lines.join("\n")}
complete -c npx -n 'test "$(commandline -opc)[2]" = errand-broker' -fa '(complete -C (commandline -pc | string replace -r "^\\\\s*npx\\\\s+errand-broker" "errand"))'
`;
}
