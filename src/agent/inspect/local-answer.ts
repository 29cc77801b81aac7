/** Responses of the local API: JSON, and errors in the format of the official agent. */
import type { ServerResponse } from 'node:http'

/** Error numbers of the official agent. */
export const localCodes = { badTunnel: 102, tunnelNotStarted: 103, notReady: 104 } as const

/** A request that is refused. */
export class LocalRefusal extends Error {
  readonly status: number
  readonly code: number | undefined
  readonly details: Readonly<Record<string, string>>

  constructor(
    status: number,
    message: string,
    { code, details = {} }: { code?: number; details?: Readonly<Record<string, string>> } = {},
  ) {
    super(message)
    this.name = 'LocalRefusal'
    this.status = status
    this.code = code
    this.details = details
  }
}

export function notFound(path: string): LocalRefusal {
  return new LocalRefusal(404, 'Resource not found', { details: { path } })
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const bytes = Buffer.from(`${JSON.stringify(value)}\n`)
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': bytes.length })
  response.end(bytes)
}

export function sendNothing(response: ServerResponse): void {
  response.writeHead(204).end()
}

export function sendRefusal(response: ServerResponse, { status, code, message, details }: LocalRefusal): void {
  sendJson(response, status, { error_code: code, status_code: status, msg: message, details })
}

/** Sends a list that may be long: one item at a time, no faster than it is read. */
export async function sendList<T>(
  response: ServerResponse,
  { before, items, view, after }: { before: string; items: readonly T[]; view: (item: T) => unknown; after: string },
): Promise<void> {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  let text = before
  for (const item of items) {
    response.write(text + JSON.stringify(view(item)))
    text = ','
    if (response.destroyed) return
    if (response.writableNeedDrain) await untilDrained(response)
    else await new Promise((resolve) => setImmediate(resolve))
  }
  response.end(`${text === ',' ? '' : before}${after}\n`)
}

/** Resolves when there is room again, or the reader is gone. */
function untilDrained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
