/** Decompresses the kept body of a message, as its headers say. */
import type { UnpackedText, Unpacker } from '../../lib/bytes/unpacker.ts'
import type { KeptMessage } from '../../model/exchange.ts'

/** Undefined for a body that was not kept, is not compressed, or is not text. */
export async function unpackedBody(
  unpacker: Unpacker,
  message: KeptMessage | undefined,
): Promise<UnpackedText | undefined> {
  if (!message?.body) return undefined
  const { headers, body } = message
  const codings = headers.filter(({ name }) => name.toLowerCase() === 'content-encoding').map(({ value }) => value)
  if (codings.length === 0) return undefined
  return unpacker.text(Buffer.from(body.content, body.encoding === 'text' ? 'utf8' : 'base64'), codings.join(','))
}
