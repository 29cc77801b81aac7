/**
 * Recognises requests and answers in what passes by, for people who watch; it changes nothing and looks only at how a
 * chunk begins. A head that begins within a chunk is missed, which is a fair price for costing nothing.
 */
import { type ByteStream, writeLent } from '../lib/bytes/byte-stream.ts'
import type { Figures, SeenRequest } from './figures.ts'

/** Longest line that is looked at, in bytes. */
const LINE_BYTES = 2048

/** Longest path that is kept, in characters. */
const PATH_CHARACTERS = 200

const requestLine = /^([A-Z]{3,16}) (\S+) HTTP\/1\.[01]\r\n/
const statusLine = /^HTTP\/1\.[01] (\d{3})/

export interface Tap {
  readonly figures: Figures
  readonly now: () => number
  /** A request began, or got its answer. */
  readonly onChange: () => void
}

/** `visitor` as it is, with an eye on both ways: requests come out of it, answers go into it. */
export function tapped(visitor: ByteStream, { figures, now, onChange }: Tap): ByteStream {
  let current: SeenRequest | undefined
  const request = (chunk: Buffer): void => {
    // Within a request whose answer is not there yet, a chunk is a part of its body.
    if (current || !isLetter(chunk[0])) return
    const [, method, path = ''] = requestLine.exec(chunk.toString('latin1', 0, LINE_BYTES)) ?? []
    if (method === undefined) return
    current = { method, path: path.slice(0, PATH_CHARACTERS), status: undefined, durationMs: undefined, at: now() }
    figures.saw(current)
    onChange()
  }
  const answer = (chunk: Buffer): void => {
    if (!current || chunk[0] !== LETTER_H) return
    const status = Number(statusLine.exec(chunk.toString('latin1', 0, 16))?.[1])
    // The final answer follows after one of these; a 101 is final.
    if (Number.isNaN(status) || (status < 200 && status !== 101)) return
    current.status = status
    current.durationMs = now() - current.at
    figures.took(current.durationMs)
    current = undefined
    onChange()
  }
  return {
    write(chunk) {
      answer(chunk)
      return visitor.write(chunk)
    },
    writeLent(chunk) {
      answer(chunk)
      return writeLent(visitor, chunk)
    },
    end: () => visitor.end(),
    reset: () => visitor.reset(),
    attach(sink) {
      const { lent } = sink
      visitor.attach({
        data(chunk) {
          request(chunk)
          sink.data(chunk)
        },
        lent:
          lent &&
          ((chunk) => {
            request(chunk)
            lent(chunk)
          }),
        end: () => sink.end(),
        drain: () => sink.drain(),
        closed: (error) => sink.closed(error),
      })
    },
    pause: () => visitor.pause(),
    resume: () => visitor.resume(),
  }
}

const LETTER_H = 0x48

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a
}
