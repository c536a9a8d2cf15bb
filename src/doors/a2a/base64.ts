/**
 * Base64 as ProtoJSON takes bytes: either alphabet, padding optional. White space is passed over, as it comes from
 * encoders that break lines. Limit: form only; checked in linear time, however long the text is.
 */
import { z } from "zod";

const WHITE_SPACE = /[\t\n\r ]+/g;
const FORM = /^[A-Za-z0-9+/_-]*={0,2}$/;

export function isBase64(text: string): boolean {
  const code = text.replaceAll(WHITE_SPACE, "");
  if (!FORM.test(code)) return false;
  // Without padding, one character too many holds no whole byte.
  return code.endsWith("=") ? code.length % 4 === 0 : code.length % 4 !== 1;
}

export const base64Schema = z.string().refine(isBase64, "is no base64");
