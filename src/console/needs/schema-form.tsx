import { useSignal } from "@preact/signals";
import { JsonField } from "../ui/json-field.tsx";
import { Said } from "../ui/said.tsx";
import { PLAIN, SECRET } from "./answer-text.tsx";
import { type Field, fieldsOf } from "./schema-fields.ts";

interface Props {
  readonly schema: unknown;
  /** Texts are hidden while they are typed. */
  readonly isSecret: boolean;
  readonly onSubmit: (data: unknown) => void;
}

/** A form for simple schemas: strings, numbers, booleans, enums and lists of enums. For others, a JSON editor. */
export function SchemaForm({ schema, isSecret, onSubmit }: Props) {
  const fields = fieldsOf(schema);
  /** Undefined while it is not JSON. */
  const data = useSignal<unknown>({});
  if (fields === null) {
    const submit = (event: Event) => {
      event.preventDefault();
      if (data.value !== undefined) onSubmit(data.value);
    };
    return (
      <form class="fields" onSubmit={submit}>
        <JsonField
          label="The answer, as JSON"
          value={{}}
          onValue={(value) => {
            data.value = value;
          }}
        />
        <button type="submit">Answer</button>
      </form>
    );
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const form = new FormData(event.currentTarget);
    onSubmit(Object.fromEntries(fields.flatMap((field) => memberOf(field, form))));
  };
  return (
    // A browser offers again what it keeps of a form.
    <form class="fields" autocomplete="off" onSubmit={submit}>
      {fields.map((field) => (
        // biome-ignore lint/a11y/noLabelWithoutControl: the control is in it
        <label key={field.name} class={field.type === "boolean" ? "check" : ""}>
          <span>
            <Said>{field.title}</Said>
            {hintsOf(field).length > 0 && (
              <small>
                {" "}
                <Said>{hintsOf(field).join(" · ")}</Said>
              </small>
            )}
          </span>
          <Control field={field} isSecret={isSecret} />
          {field.description !== "" && (
            <small>
              <Said>{field.description}</Said>
            </small>
          )}
        </label>
      ))}
      <button type="submit">Answer</button>
    </form>
  );
}

const hintsOf = ({ isRequired, type, bounds }: Field): string[] => [
  ...(isRequired || type === "boolean" ? [] : ["optional"]),
  ...bounds,
];

function Control({ field, isSecret }: { readonly field: Field; readonly isSecret: boolean }) {
  const { name, type, choices, isRequired } = field;
  if (type === "boolean")
    return <input type="checkbox" name={name} defaultChecked={field.initial === true} />;
  if (choices.length > 0) {
    return (
      <select name={name} required={isRequired} multiple={type === "array"}>
        {type !== "array" && (!isRequired || !choices.some((choice) => choice === field.initial)) && (
          <option value="">{isRequired ? "choose…" : "–"}</option>
        )}
        {choices.map((choice, index) => (
          <option key={choice} value={index} selected={field.initial === choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  const initial = typeof field.initial === "string" || typeof field.initial === "number" ? field.initial : "";
  if (type === "string")
    return (
      <input
        {...(isSecret ? SECRET : PLAIN)}
        name={name}
        required={isRequired}
        defaultValue={String(initial)}
        {...field.limits}
      />
    );
  return (
    <input
      type="number"
      name={name}
      required={isRequired}
      step={type === "integer" ? 1 : "any"}
      defaultValue={String(initial)}
      {...field.limits}
    />
  );
}

/** The field's member of the answer; none if the field is optional and empty. */
function memberOf({ name, type, choices, isRequired }: Field, form: FormData): [string, unknown][] {
  const text = form.get(name);
  if (type === "boolean") return [[name, text !== null]];
  if (type === "array") {
    const chosen = form.getAll(name).map((index) => choices[Number(index)]);
    return chosen.length > 0 || isRequired ? [[name, chosen]] : [];
  }
  if (typeof text !== "string" || (text === "" && !isRequired)) return [];
  if (choices.length > 0) return [[name, choices[Number(text)]]];
  return [[name, type === "string" ? text : Number(text)]];
}
