/** Names the files of a task and the artifacts of its answer, with size and the command that saves one. */

import type { Artifact, Message } from "../../schema/a2a.ts";
import { isStored } from "../../schema/file-url.ts";
import { sizeOf } from "../artifacts/content.ts";
import { FileNames } from "../file-names.ts";
import { oneLine } from "./output.ts";
import { sizeText } from "./size.ts";

const NAME_CHARS = 60;

/** `notes.txt (44 bytes), plan.pdf (1.2 MiB)`; empty without files. */
export const filesText = ({ parts }: Message): string =>
  parts
    .filter((part) => part.raw !== undefined || isStored(part))
    .map(
      (part) =>
        `${oneLine(part.filename ?? "a file without a name", NAME_CHARS)} (${sizeText(sizeOf([part]))})`,
    )
    .join(", ");

/** `plot.png (1.4 MiB)`. */
export const artifactText = ({ artifactId, name, parts }: Artifact): string =>
  `${oneLine(name ?? artifactId, NAME_CHARS)} (${sizeText(sizeOf(parts))})`;

/** The agent chose the name: one that a shell could read as more than a word is not put into a command. */
export function howToSave(id: string, { artifactId, name }: Artifact, all: readonly Artifact[]): string {
  const isUnique = name !== undefined && all.filter((other) => other.name === name).length === 1;
  const wanted = [isUnique ? name : artifactId, artifactId].find(isWord);
  if (wanted === undefined) return `errand get ${id} --artifacts <folder>`;
  const file = new FileNames().next(wanted.slice(wanted.lastIndexOf("/") + 1), "artifact");
  return `errand get ${id} --artifact ${wanted} -o ${file}`;
}

const isWord = (text: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9_./@+-]{0,99}$/.test(text);
