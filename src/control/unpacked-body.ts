/** The body of a message that was kept, without the compression that its headers tell of. */
import type { UnpackedText, Unpacker } from '../lib/bytes/unpacker.ts'
import type { KeptMessage } from '../model/exchange.ts'

/** Undefined for a body that was not kept, not compressed, or no text. */
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
