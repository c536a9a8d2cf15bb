/**
 * Base64 as ProtoJSON accepts it: either alphabet, padding optional. White space is ignored, because some encoders break
 * lines. Limit: checks the form only, in linear time.
 */
import * as z from "zod";

const WHITE_SPACE = /[\t\n\r ]+/g;
const FORM = /^[A-Za-z0-9+/_-]*={0,2}$/;

export function isBase64(text: string): boolean {
  const code = text.replaceAll(WHITE_SPACE, "");
  if (!FORM.test(code)) return false;
  // Without padding, one character alone at the end cannot encode a byte.
  return code.endsWith("=") ? code.length % 4 === 0 : code.length % 4 !== 1;
}

export const base64Schema = z.string().refine(isBase64, "is not base64");
