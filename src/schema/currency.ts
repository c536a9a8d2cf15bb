/** Codes of currencies. Limit: which codes exist is what the JavaScript engine knows. */
import * as z from "zod";

/** ISO 4217, for example `USD`. */
export const currencySchema = z
  .string()
  .regex(/^[A-Z]{3}$/, "a currency is three capital letters (ISO 4217), for example 'USD'");

let known: ReadonlySet<string> | undefined;

/** Whether a request may name the currency; what is stored may have another. */
export function isKnownCurrency(code: string | undefined): boolean {
  if (code === undefined) return true;
  known ??= new Set(Intl.supportedValuesOf("currency"));
  return known.has(code);
}
export const UNKNOWN_CURRENCY = "is no currency of ISO 4217";
