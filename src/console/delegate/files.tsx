/** The files of a task: chosen, or dropped anywhere on the page. */
import { type Signal, signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Connection } from "../data/connection.ts";
import { session } from "../session/session.ts";
import { sizeText } from "../ui/bytes.ts";
import { Said } from "../ui/said.tsx";
import { forgetUploads, runningUpload } from "./uploads.ts";

/** What was chosen in each form, until the page is reloaded or the session ends. */
const chosen = new Map<string, Signal<readonly File[]>>();
let of: Connection | undefined;

export function useFiles(key: string): Signal<readonly File[]> {
  return useMemo(() => {
    const connection = session.peek()?.connection;
    if (of !== connection) chosen.clear();
    of = connection;
    const files = chosen.get(key) ?? signal<readonly File[]>([]);
    chosen.set(key, files);
    return files;
  }, [key]);
}

/** One that is chosen twice is sent once. */
const isSame = (one: File, other: File): boolean =>
  one.name === other.name && one.size === other.size && one.lastModified === other.lastModified;

interface Props {
  readonly files: readonly File[];
  /** Their names when the page was left; it was reloaded since if they are not among the files. */
  readonly names: readonly string[];
  /** `names`: also of those that a reload lost and that nobody left out. */
  readonly onChange: (files: readonly File[], names: readonly string[]) => void;
}

export function FileField({ files, names, onChange }: Props) {
  const change = (changed: readonly File[], lost: readonly string[]) =>
    onChange(changed, inOrder(names, [...lostOf(lost, changed), ...namesOf(changed)]));
  const lost = lostOf(names, files);
  const add = (more: readonly File[]) =>
    change([...files, ...more.filter((one) => !files.some((other) => isSame(one, other)))], lost);
  const isOver = useDrop(add);
  return (
    <>
      <label>
        <span>
          Files <small>optional</small>
        </span>
        <input
          type="file"
          name="files"
          multiple
          onChange={({ currentTarget }) => {
            add([...(currentTarget.files ?? [])]);
            // The list below has them; the same one can be chosen again.
            currentTarget.value = "";
          }}
        />
      </label>
      <p class={isOver ? "drop over" : "drop dim"}>
        {isOver ? "Drop them here." : "Or drop files on this page."}
      </p>
      {files.length > 0 && (
        <ul class="chosen-files">
          {files.map((file) => (
            <li key={`${file.name} ${file.size} ${file.lastModified}`}>
              <Said>{file.name}</Said> <span class="dim">{sizeText(file.size)}</span>
              <Progress file={file} />
              <button
                type="button"
                class="quiet"
                aria-label={`Remove ${file.name}`}
                onClick={() => {
                  forgetUploads([file]);
                  change(
                    files.filter((one) => one !== file),
                    lost,
                  );
                }}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      {lost.length > 0 && (
        <p class="kept-parts">
          <span>
            A reload of the page lost these files. Choose them again: <Said>{lost.join(", ")}</Said>
          </span>
          <button type="button" onClick={() => change(files, [])}>
            Leave out
          </button>
        </p>
      )}
    </>
  );
}

/** How much of it the broker has, while it is uploaded. */
function Progress({ file }: { readonly file: File }) {
  const bytes = runningUpload([file])?.[1].bytes.value;
  return bytes === undefined ? null : (
    <>
      <progress max={file.size} value={bytes} aria-label={`Upload of ${file.name}`} />{" "}
      <span class="dim">{Math.floor((100 * bytes) / file.size)} %</span>
    </>
  );
}

const namesOf = (files: readonly File[]): readonly string[] => files.map(({ name }) => name);

/** Those that were there before stay in their order. */
function inOrder(before: readonly string[], names: readonly string[]): readonly string[] {
  const place = (name: string) => (before.includes(name) ? before.indexOf(name) : before.length);
  return [...names].sort((a, b) => place(a) - place(b));
}

export const lostOf = (names: readonly string[], files: readonly File[]): readonly string[] =>
  names.filter((name) => !files.some((file) => file.name === name));

/** Takes files that are dropped anywhere on the page. Returns whether some are over it. */
function useDrop(add: (files: readonly File[]) => void): boolean {
  const isOver = useSignal(false);
  const latest = useRef(add);
  latest.current = add;
  useEffect(() => {
    const stop = new AbortController();
    const on = (type: string, listen: (event: DragEvent) => void) =>
      addEventListener(
        type,
        (event) => {
          if (event instanceof DragEvent && event.dataTransfer?.types.includes("Files")) listen(event);
        },
        { signal: stop.signal },
      );
    on("dragover", (event) => {
      event.preventDefault();
      isOver.value = true;
    });
    on("dragleave", ({ relatedTarget }) => {
      // It has left the page.
      if (relatedTarget === null) isOver.value = false;
    });
    on("drop", (event) => {
      event.preventDefault();
      isOver.value = false;
      latest.current([...(event.dataTransfer?.files ?? [])]);
    });
    return () => stop.abort();
  }, []);
  return isOver.value;
}
