/** Server-sent events out of the body of an answer. */
import { Failure } from '../failure.ts'

/** The longest line, in characters; an exchange has a few thousand. */
const MAX_LINE = 1_000_000

export interface ServerSentEvent {
  readonly name: string
  readonly data: string
}

/** Our server ends lines with a line feed, and writes one line for each field. */
export async function* eventsIn(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  let name = ''
  for await (const part of body) {
    const lines = `${rest}${decoder.decode(part, { stream: true })}`.split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE) throw new Failure('a line of the stream has no end; check --api-url')
    for (const line of lines) {
      if (line.startsWith('event: ')) name = line.slice('event: '.length)
      else if (line.startsWith('data: ')) yield { name, data: line.slice('data: '.length) }
    }
  }
}
