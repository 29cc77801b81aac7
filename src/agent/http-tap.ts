/**
 * Recognises requests and responses in passing traffic, for people who watch. It changes nothing and looks only at the
 * beginning of each chunk. A head that begins inside a chunk is missed; in return this costs next to nothing.
 */
import { type ByteStream, writeLent } from '../lib/bytes/byte-stream.ts'
import type { Figures, SeenRequest } from './figures.ts'

/** How much of a line is examined, in bytes. */
export const LINE_BYTES = 2048

/** How much of a path is kept, in characters. */
const PATH_CHARACTERS = 200

/** The status that the server sends to a visitor whose request the service did not answer. */
const BAD_GATEWAY = 502

/** A PROXY header of version 1 may precede the first request. */
const requestLine = /^(?:PROXY [^\r\n]{0,100}\r\n)?([A-Z]{3,16}) (\S+) HTTP\/1\.[01]\r\n/
const statusLine = /^HTTP\/1\.[01] (\d{3})/

export interface Tap {
  readonly figures: Figures
  /** The name of the tunnel that is watched. */
  readonly tunnel: string
  /** Milliseconds, for durations. */
  readonly now: () => number
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** A request began, or got its answer. */
  readonly onChange: () => void
}

/** Wraps `visitor` and watches both directions: requests come out of it, responses go into it. */
export function tapped(visitor: ByteStream, tap: Tap): ByteStream {
  let current: { readonly request: SeenRequest; readonly at: number } | undefined
  const request = (chunk: Buffer): void => {
    // While a request is unanswered, further chunks belong to its body.
    if (current || !isLetter(chunk[0])) return
    const seen = seenIn(chunk, tap)
    if (seen) current = { request: seen, at: tap.now() }
  }
  const answered = (status: number): void => {
    if (!current) return
    finish(current.request, { status, durationMs: tap.now() - current.at }, tap)
    current = undefined
  }
  const answer = (chunk: Buffer): void => {
    if (!current || chunk[0] !== LETTER_H) return
    const status = Number(statusLine.exec(chunk.toString('latin1', 0, 16))?.[1])
    // A final response follows any other 1xx; a 101 is final.
    if (Number.isNaN(status) || (status < 200 && status !== 101)) return
    answered(status)
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
    // The service has ended or failed, so the server answers a request that is still open.
    end() {
      answered(BAD_GATEWAY)
      visitor.end()
    },
    reset() {
      answered(BAD_GATEWAY)
      visitor.reset()
    },
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
        closed(error) {
          // The visitor disconnected, so there will be no response.
          current = undefined
          sink.closed(error)
        },
      })
    },
    pause: () => visitor.pause(),
    resume: () => visitor.resume(),
  }
}

/** Records the request at the beginning of `chunk` as one that could not be forwarded, `durationMs` after it came. */
export function noteUnserved(chunk: Buffer, durationMs: number, tap: Tap): void {
  const request = seenIn(chunk, tap)
  if (request) finish(request, { status: BAD_GATEWAY, durationMs }, tap)
}

function seenIn(chunk: Buffer, { figures, tunnel, clock, onChange }: Tap): SeenRequest | undefined {
  const [, method, path = ''] = requestLine.exec(chunk.toString('latin1', 0, LINE_BYTES)) ?? []
  if (method === undefined) return undefined
  const request = {
    tunnel,
    time: clock(),
    method,
    path: path.slice(0, PATH_CHARACTERS),
    status: undefined,
    durationMs: undefined,
  }
  figures.saw(request)
  onChange()
  return request
}

function finish(
  request: SeenRequest,
  { status, durationMs }: { status: number; durationMs: number },
  { figures, onChange }: Tap,
): void {
  request.status = status
  request.durationMs = durationMs
  figures.took(durationMs)
  onChange()
}

const LETTER_H = 0x48

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a
}
