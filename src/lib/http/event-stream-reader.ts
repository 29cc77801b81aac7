/** Reads server-sent events from a text that arrives in parts. */

/** The longest event, in characters; an exchange has a few thousand. */
const MAX_EVENT = 1_000_000

export interface ServerEvent {
  readonly name: string
  readonly data: string
}

/** Browsers run it too, so it must not use Node. */
export class EventStreamReader {
  #rest = ''

  /** The events that are complete by now, without comments, which only keep the connection alive. */
  read(part: string): ServerEvent[] {
    const blocks = `${this.#rest}${part}`.split('\n\n')
    this.#rest = blocks.pop() ?? ''
    if (this.#rest.length > MAX_EVENT) throw new Error('an event has no end')
    return blocks.flatMap((block) => {
      const fields = new Map(block.split('\n').map((line) => fieldOf(line)))
      const data = fields.get('data')
      return data === undefined ? [] : [{ name: fields.get('event') ?? 'message', data }]
    })
  }
}

/** Our server writes one line for each field, and ends it with a line feed. */
function fieldOf(line: string): [name: string, value: string] {
  const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? []
  return [name, value]
}
