/** The forms that answer questions, in one file that is loaded with the first question. */
export { GivenAnswer } from "./given-answer.tsx";
export { RequestForms } from "./request-forms.tsx";
export { SelectQuestion, Several } from "./several.tsx";
