/** The forms that answer questions, in one file that is loaded with the first question. */
export { RequestForm } from "./request-form.tsx";
export { SelectQuestion, Several } from "./several.tsx";
