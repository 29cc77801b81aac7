/** The access log: one line for each request and each connection, written many at a time so that it costs little. */
import { cutText } from '../../lib/text/cut-text.ts'
import type { AccessRecord } from '../requests/access-record.ts'
import type { ConnectionRecord } from './relay-connection.ts'

interface AccessLogOptions {
  /** Takes whole lines, several in one text. */
  readonly write: (lines: string) => void
  readonly isOn: () => boolean
  readonly now: () => number
}

/** How long a line may wait, in milliseconds. */
const FLUSH_MS = 50

/** How much may wait, in characters. */
const FLUSH_CHARACTERS = 64 * 1024

export class AccessLog {
  readonly #options: AccessLogOptions
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  constructor(options: AccessLogOptions) {
    this.#options = options
  }

  request(record: AccessRecord): void {
    if (!this.#options.isOn()) return
    const { peer, found } = record
    this.#add('request', {
      ip: peer.ip,
      method: cutText(record.method),
      host: cutText(record.host),
      path: cutText(record.path),
      status: record.status,
      ms: Math.max(0, Math.round(record.durationMs * 10) / 10),
      bytes_in: record.bytesIn,
      bytes_out: record.bytesOut,
      http: record.version,
      scheme: record.scheme,
      edge: record.edge,
      route: record.route === '' ? undefined : record.route,
      target: record.target,
      fault: record.fault && `ERR_${record.fault}`,
      cut: record.isCut || undefined,
      request: record.request?.requestId,
      decided: found && found.size > 0 ? decisionsOf(found) : undefined,
    })
  }

  connection(record: ConnectionRecord): void {
    if (!this.#options.isOn()) return
    const { peer, fault } = record
    this.#add('connection', {
      ip: peer.ip,
      port: peer.serverPort,
      name: record.serverName && cutText(record.serverName),
      // If the clock was set back, the duration is zero, not negative.
      ms: Math.max(0, this.#options.now() - peer.startedAt),
      bytes_in: record.bytesIn,
      bytes_out: record.bytesOut,
      edge: record.edge,
      target: record.target,
      fault: fault === undefined || fault === 'CUT' ? undefined : `ERR_${fault}`,
      cut: fault === 'CUT' || undefined,
    })
  }

  /** Writes the lines that are waiting. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#lines
    this.#lines = ''
    if (lines !== '') this.#options.write(lines)
  }

  /** Undefined fields are left out. Every text goes through JSON, so that visitors cannot forge lines. */
  #add(msg: string, fields: Readonly<Record<string, unknown>>): void {
    const time = new Date(this.#options.now()).toISOString()
    this.#lines += `{"level":"info","time":"${time}","msg":"${msg}",${JSON.stringify(fields).slice(1)}\n`
    if (this.#lines.length > FLUSH_CHARACTERS) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS)
  }
}

function decisionsOf(found: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries([...found].map(([name, value]) => [name, cutText(value)]))
}
