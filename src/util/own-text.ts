/**
 * A copy of the text in its own memory. V8 represents a part of a text by a reference into the whole, so a part that is
 * kept, for example as the key of a map, keeps the whole.
 */
export const ownText = (text: string): string => `${text} `.slice(0, -1);
