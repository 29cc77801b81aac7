/**
 * Parses HTTP/1.1 strictly by RFC 9112. It shares no code with the server, so that the two can be compared.
 */

export interface StrictField {
  /** In lower case. */
  readonly name: string
  readonly value: string
}

export interface StrictRequest {
  readonly method: string
  /** As sent. */
  readonly target: string
  readonly fields: readonly StrictField[]
  readonly trailers: readonly StrictField[]
  readonly body: Buffer
  /** Whether its sender takes the connection for closed after the answer. */
  readonly isLast: boolean
}

export interface StrictResponse {
  readonly status: number
  readonly fields: readonly StrictField[]
  readonly trailers: readonly StrictField[]
  readonly body: Buffer
}

export interface Parsed<T> {
  /** The complete messages. */
  readonly messages: readonly T[]
  /** What follows the messages: nothing, the beginning of another message, or something malformed. */
  readonly rest: 'nothing' | 'partial' | 'malformed'
  /** Why it is malformed. */
  readonly reason: string
  /** The position after the last complete message. */
  readonly at: number
}

/** Thrown and caught in this file only. */
class Malformed extends Error {}
class Partial extends Error {}

/** `skipsBlank`: ignores one blank line before each request, as RFC 9112 §2.2 allows for old clients. */
/** `isFirstHop`: as a server of visitors reads them, who may send an empty line before, or HTTP/1.0. */
export function parseRequests(bytes: Buffer, { isFirstHop = false } = {}): Parsed<StrictRequest> {
  return parseAll(bytes, (cursor) => {
    if (isFirstHop && bytes.toString('latin1', cursor.at, cursor.at + 2) === '\r\n') cursor.at += 2
    return parseRequest(cursor, isFirstHop ? requestLine : newRequestLine)
  })
}

/**
 * `methods` are those of the answered requests, in order; the messages include interim responses. A server that refuses an
 * unreadable request does not know its method, so the last answer may have a body even after HEAD.
 */
export function parseResponses(
  bytes: Buffer,
  { methods, isEnded = false }: { methods: readonly string[]; isEnded?: boolean },
): Parsed<StrictResponse> {
  let finals = 0
  return parseAll(bytes, (cursor) => {
    const method = methods[finals] ?? 'GET'
    const { at } = cursor
    let response = parseResponse(cursor, { method, isEnded })
    const isLast = method === 'HEAD' && valuesOf(response.fields, 'connection').includes('close')
    if (isLast && cursor.at < bytes.length) {
      cursor.at = at
      response = parseResponse(cursor, { method: 'GET', isEnded })
    }
    if (response.status >= 200) finals++
    return response
  })
}

/** All values of a field, in order. */
export function valuesOf(fields: readonly StrictField[], name: string): string[] {
  return fields.filter((field) => field.name === name).map(({ value }) => value)
}

/** What `Connection` lists. */
export function optionsOf(fields: readonly StrictField[]): string[] {
  return valuesOf(fields, 'connection').flatMap((value) =>
    value.split(',').map((option) => option.trim().toLowerCase()),
  )
}

class Cursor {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** The text up to the next CRLF, which is skipped. A line holds no control characters except tabs. */
  line(): string {
    for (let i = this.at; i < this.bytes.length; i++) {
      const byte = this.bytes[i] ?? 0
      if (byte === 0x0d) {
        if (i + 1 === this.bytes.length) break
        if (this.bytes[i + 1] !== 0x0a) throw new Malformed('a bare CR')
        const line = this.bytes.toString('latin1', this.at, i)
        this.at = i + 2
        return line
      }
      if (byte === 0x0a) throw new Malformed('a bare LF')
      if ((byte < 0x20 && byte !== 0x09) || byte === 0x7f) throw new Malformed('a control character')
    }
    throw new Partial()
  }

  take(length: number): Buffer {
    if (this.bytes.length - this.at < length) throw new Partial()
    const taken = this.bytes.subarray(this.at, this.at + length)
    this.at += length
    return taken
  }
}

function parseAll<T>(bytes: Buffer, parse: (cursor: Cursor) => T): Parsed<T> {
  const cursor = new Cursor(bytes)
  const messages: T[] = []
  for (;;) {
    const { at } = cursor
    if (at === bytes.length) return { messages, rest: 'nothing', reason: '', at }
    try {
      messages.push(parse(cursor))
    } catch (error) {
      if (error instanceof Partial) return { messages, rest: 'partial', reason: '', at }
      if (error instanceof Malformed) return { messages, rest: 'malformed', reason: error.message, at }
      throw error
    }
  }
}

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP\/1\.([01])$/
const newRequestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP\/1\.(1)$/
const statusLine = /^HTTP\/1\.1 ([1-9][0-9]{2}) ([\t\x20-\x7e\x80-\xff]*)$/
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*(.*?)[\t ]*$/s

function parseRequest(cursor: Cursor, firstLine: RegExp): StrictRequest {
  const [, method = '', target = '', minor] = firstLine.exec(cursor.line()) ?? malformed('a request line')
  const fields = parseFields(cursor)
  const hosts = valuesOf(fields, 'host')
  if (hosts.length !== 1) malformed(`${hosts.length} Host fields`)
  const framed = framing(fields)
  if (minor === '0' && framed === 'chunked') malformed('chunks in HTTP/1.0')
  const options = optionsOf(fields)
  const isLast = options.includes('close') || (minor === '0' && !options.includes('keep-alive'))
  if (framed === undefined) return { method, target, fields, isLast, trailers: [], body: Buffer.alloc(0) }
  return { method, target, fields, isLast, ...parseBody(cursor, framed) }
}

function parseResponse(cursor: Cursor, { method, isEnded }: { method: string; isEnded: boolean }): StrictResponse {
  const [, text = ''] = statusLine.exec(cursor.line()) ?? malformed('a status line')
  const status = Number(text)
  const fields = parseFields(cursor)
  const none = { trailers: [], body: Buffer.alloc(0) }
  if (status < 200 || status === 204 || status === 304 || method === 'HEAD') return { status, fields, ...none }
  const framed = framing(fields)
  if (framed !== undefined) return { status, fields, ...parseBody(cursor, framed) }
  if (!isEnded) throw new Partial()
  return { status, fields, trailers: [], body: cursor.take(cursor.bytes.length - cursor.at) }
}

function parseFields(cursor: Cursor): StrictField[] {
  const fields: StrictField[] = []
  for (let line = cursor.line(); line !== ''; line = cursor.line()) {
    const [, name = '', value = ''] = fieldLine.exec(line) ?? malformed('a field line')
    fields.push({ name: name.toLowerCase(), value })
  }
  return fields
}

/** RFC 9112 §6.3, without any of the leniency that it allows. */
function framing(fields: readonly StrictField[]): number | 'chunked' | undefined {
  const lengths = valuesOf(fields, 'content-length')
  const codings = valuesOf(fields, 'transfer-encoding')
  if (codings.length > 0) {
    if (lengths.length > 0) malformed('Content-Length beside Transfer-Encoding')
    if (codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked') malformed('a Transfer-Encoding')
    return 'chunked'
  }
  if (lengths.length === 0) return undefined
  if (lengths.length > 1 || !/^[0-9]{1,15}$/.test(lengths[0] ?? '')) malformed('a Content-Length')
  return Number(lengths[0])
}

function parseBody(cursor: Cursor, framed: number | 'chunked'): { trailers: StrictField[]; body: Buffer } {
  if (framed !== 'chunked') return { trailers: [], body: cursor.take(framed) }
  const chunks: Buffer[] = []
  for (;;) {
    const [, digits = ''] = /^([0-9A-Fa-f]{1,13})(?:;.*)?$/s.exec(cursor.line()) ?? malformed('the size of a chunk')
    const size = Number.parseInt(digits, 16)
    if (size === 0) return { trailers: parseFields(cursor), body: Buffer.concat(chunks) }
    chunks.push(cursor.take(size))
    if (cursor.take(2).toString('latin1') !== '\r\n') malformed('a chunk whose length differs from its size')
  }
}

function malformed(what: string): never {
  throw new Malformed(what)
}
