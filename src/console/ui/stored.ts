/** Files that the broker stores beside messages. */
import { fileOfUrl } from "../../schema/file-url.ts";

/** Whether it is a file of a delegation. The broker gives it only to those who have a token. */
export const isOfDelegation = (url: string): boolean => fileOfUrl(url)?.delegation_id !== undefined;
