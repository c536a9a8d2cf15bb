/** The fields of answers, in one file that is loaded with the first question. */
export { JsonField } from "../ui/json-field.tsx";
export { CommentField, TextAnswer } from "./answer-text.tsx";
export { SchemaForm } from "./schema-form.tsx";
