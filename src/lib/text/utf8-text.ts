/** Bytes as text; undefined when they are not UTF-8. Of those that were cut, the last character may be a part, and is left off. */
export function utf8Text(bytes: Uint8Array, { isCut }: { readonly isCut: boolean }): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut })
  } catch {
    return undefined
  }
}
