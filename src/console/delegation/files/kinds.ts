/** What a file is shown as, by its media type, and if that says little by its name. */
export type Kind = "markdown" | "diff" | "table" | "json" | "text" | "image" | "other";

/** Images that a browser draws and never runs. SVG may hold scripts. */
const IMAGE = /^image\/(?:png|jpeg|gif|webp|avif)$/;
const BY_TYPE: readonly (readonly [RegExp, Kind])[] = [
  [/^text\/(?:markdown|x-markdown)$/, "markdown"],
  [/^text\/(?:x-diff|x-patch)$/, "diff"],
  [/^text\/(?:csv|tab-separated-values)$/, "table"],
  [/^application\/(?:[\w.-]+\+)?json$/, "json"],
  [IMAGE, "image"],
  [/^text\/|^application\/(?:x-(?:sh|ndjson|yaml|tex)|xml|yaml|sql|toml|javascript|typescript)$/, "text"],
];
const TYPES: Readonly<Record<string, string>> = {
  md: "text/markdown",
  markdown: "text/markdown",
  diff: "text/x-diff",
  patch: "text/x-diff",
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  json: "application/json",
  txt: "text/plain",
  log: "text/plain",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
};
/** Types that say only "text" or "bytes": the ending of the name may say more. */
const VAGUE = ["", "text/plain", "application/octet-stream"];

/** Without parameters, in lower case. */
export function typeOf(mediaType: string | undefined, name: string): string {
  const type = (mediaType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  return VAGUE.includes(type) ? (TYPES[ending] ?? type) : type;
}

export const kindOf = (type: string): Kind => BY_TYPE.find(([pattern]) => pattern.test(type))?.[1] ?? "other";

const ENDINGS: Readonly<Record<Kind, string>> = {
  ...{ markdown: "md", diff: "diff", table: "csv", json: "json", text: "txt", image: "png", other: "bin" },
};
/** The ending of a file whose name has none. */
export const endingOf = (type: string): string =>
  Object.entries(TYPES).find(([, one]) => one === type)?.[0] ?? ENDINGS[kindOf(type)];

const WORDS: Readonly<Record<Kind, string>> = {
  ...{ markdown: "Markdown", diff: "diff", table: "table", json: "JSON", text: "text", image: "image" },
  other: "file",
};
/** The type in a list: a word, or the media type of what is no text and no picture. */
export const typeWord = (type: string): string =>
  kindOf(type) === "other" && type !== "" ? type : WORDS[type === "" ? "text" : kindOf(type)];
