import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { focusByKeyboard } from "../app/keys.ts";
import { href, route } from "../app/route.ts";
import { now } from "../data/clock.ts";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { FIELDS, isFiltered } from "./filter.ts";
import {
  MAX_NAME,
  MOST_VIEWS,
  queryOf,
  removeView,
  renameView,
  type Search,
  saveView,
  searchOf,
  type View,
  views,
} from "./views.ts";

const present = (params: URLSearchParams): Search =>
  Object.fromEntries(FIELDS.flatMap((name) => (params.get(name) ? [[name, params.get(name) ?? ""]] : [])));

/** The searches that the reader saved; the present one can be saved, renamed or removed. */
export function SavedViews() {
  const { params } = route.value;
  const search = present(params);
  const at = now.value;
  const query = queryOf(search, at);
  const current = views.value.find((view) => queryOf(searchOf(view, at), at) === query);
  const maySave = !current && isFiltered(params) && views.value.length < MOST_VIEWS;
  if (views.value.length === 0 && !maySave) return null;
  return (
    <div class="saved">
      {views.value.length > 0 && (
        <nav class="presets" aria-label="Saved views">
          {views.value.map((view) => (
            <a
              key={view.name}
              href={href("find", searchOf(view, at))}
              aria-current={view === current ? "true" : undefined}
            >
              <Said>{view.name}</Said>
            </a>
          ))}
        </nav>
      )}
      {current ? (
        <Change key={current.name} view={current} />
      ) : (
        maySave && <NameForm key={query} verb="Save view" start="" onName={(name) => saveView(name, query)} />
      )}
    </div>
  );
}

function Change({ view }: { readonly view: View }) {
  return (
    <>
      <NameForm verb="Rename" start={view.name} onName={(name) => renameView(view.name, name)} />
      <button type="button" class="quiet" onClick={() => removeView(view.name)}>
        Remove view
      </button>
    </>
  );
}

interface NameProps {
  /** On the button that opens the field, and on the one that takes it. */
  readonly verb: string;
  readonly start: string;
  readonly onName: (name: string) => void;
}

/** A button, and in its place a field for the name. */
function NameForm({ verb, start, onName }: NameProps) {
  const name = useSignal<string | null>(null);
  const error = useSignal<unknown>(null);
  const field = useRef<HTMLInputElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const isOpen = name.value !== null;
  const wasOpen = useRef(false);
  useLayoutEffect(() => {
    if (isOpen) field.current?.select();
    else if (wasOpen.current) focusByKeyboard(opener.current);
    wasOpen.current = isOpen;
  }, [isOpen]);
  const close = () => {
    name.value = null;
  };
  if (name.value === null)
    return (
      <button
        type="button"
        class="quiet"
        ref={opener}
        onClick={() => {
          name.value = start;
        }}
      >
        {verb}
      </button>
    );
  const wanted = name.value.trim();
  const replaces = wanted !== start && views.value.some((view) => view.name === wanted);
  const submit = (event: Event) => {
    event.preventDefault();
    if (wanted === "") return;
    try {
      onName(wanted);
      close();
    } catch {
      error.value = new Error("This browser stores nothing more. Remove another view, then try again.");
    }
  };
  return (
    <form
      class="name-view"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.isComposing) return;
        event.stopPropagation();
        close();
      }}
    >
      <input
        ref={field}
        aria-label="Name of the view"
        placeholder="Name of the view"
        maxLength={MAX_NAME}
        value={name.value}
        onInput={({ currentTarget }) => {
          name.value = currentTarget.value;
        }}
      />
      <button type="submit" class="primary" disabled={wanted === ""}>
        {replaces ? "Replace view" : verb}
      </button>
      <button type="button" class="quiet" onClick={close}>
        Keep as it is
      </button>
      <Problem error={error.value} />
    </form>
  );
}
