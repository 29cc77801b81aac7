/** Bytes as text; undefined when they are not UTF-8. */
export function utf8Text(bytes: Uint8Array, { isCut }: { readonly isCut: boolean }): string | undefined {
  try {
    // The last character of a text that was cut may be incomplete, and is left off.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut })
  } catch {
    return undefined
  }
}
