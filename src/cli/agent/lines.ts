/** Writes one line for each event, for logs, pipes and services. */
import { ServiceFault } from '../../agent/dial-upstream.ts'
import type { AgentEvent, Connected } from '../../agent/events.ts'
import type { ConnectionEnd } from '../../agent/forward.ts'
import { formatServer } from '../../agent/server-address.ts'
import type { AgentTunnel } from '../../agent/tunnel.ts'
import { maskSecrets } from '../../lib/log/log-mask.ts'
import { prettyLine } from '../../lib/log/log-pretty.ts'
import type { Terminal } from '../terminal.ts'
import type { Output } from './connection-flags.ts'
import type { Display } from './display.ts'

/** How many failed visits are logged per minute, each with the request id of the visitor's error page. */
const FAILURES_A_MINUTE = 30
const MINUTE_MS = 60_000

interface LinesOptions extends Output {
  readonly openLines: Terminal['openLines']
  readonly now?: () => number
}

interface Line {
  readonly level: 'debug' | 'info' | 'warn'
  readonly msg: string
  readonly fields?: Record<string, unknown>
}

export function linesDisplay({ openLines, format, level: least, now = Date.now }: LinesOptions): Display {
  const failures = { since: Number.NEGATIVE_INFINITY, printed: 0, unprinted: 0 }
  const formatLine = ({ level, msg, fields = {} }: Line): string => {
    const line = JSON.stringify({ time: new Date(now()).toISOString(), level, msg, ...maskSecrets(fields) })
    return format === 'json' ? `${line}\n` : prettyLine(line, { color: false })
  }
  const out = openLines((lost) => formatLine({ level: 'warn', msg: 'log lines were lost', fields: { lines: lost } }))
  const print = (line: Line): void => {
    if (line.level !== 'debug' || least === 'debug') out.write(formatLine(line))
  }
  return {
    event(event) {
      const line = lineOf(event)
      if (line) print(line)
      if (event.type !== 'connection-closed' || !(event.end.error instanceof ServiceFault)) return
      if (now() - failures.since >= MINUTE_MS) Object.assign(failures, { since: now(), printed: 0 })
      if (failures.printed === FAILURES_A_MINUTE) {
        failures.unprinted++
        return
      }
      failures.printed++
      print(failureOf(event.tunnel, event.end, failures.unprinted))
      failures.unprinted = 0
    },
    updated: ({ version, error }) =>
      print(
        error
          ? { level: 'warn', msg: 'update failed', fields: { version, reason: error.message } }
          : { level: 'info', msg: 'updated; restart to use it', fields: { version } },
      ),
    inspecting: (inspector) =>
      print(
        'url' in inspector
          ? { level: 'info', msg: 'inspector online', fields: { url: inspector.url } }
          : { level: 'warn', msg: 'inspector could not start', fields: { reason: inspector.reason } },
      ),
    reloaded: ({ level, msg, fields }) => print({ level, msg, fields }),
    close() {},
    shown: (limitMs) => out.flush(limitMs),
  }
}

function lineOf(event: AgentEvent): Line | undefined {
  switch (event.type) {
    case 'online': {
      const fields = { ...locationOf(event), server_version: event.serverVersion }
      return { level: 'info', msg: event.isResumed ? 'connected again' : 'connected', fields }
    }
    case 'moved': {
      const fields = { ...locationOf(event), server_version: event.serverVersion }
      return { level: 'info', msg: 'moved to another connection', fields }
    }
    case 'offline': {
      const fields = { reason: event.fault.message, retry_ms: Math.round(event.retryMs) }
      return { level: 'warn', msg: 'not connected; retrying', fields }
    }
    case 'second-online':
      return { level: 'info', msg: 'connected to a second node', fields: locationOf(event) }
    case 'second-offline':
      return { level: 'info', msg: 'not connected to a second node', fields: { reason: event.fault.message } }
    case 'standby': {
      const { server, region } = event
      return { level: 'info', msg: 'standby ready at another node', fields: { server: formatServer(server), region } }
    }
    case 'tunnel-online':
      return { level: 'info', msg: 'tunnel online', fields: fieldsOf(event.tunnel) }
    case 'tunnel-refused': {
      const { message, serverCode } = event.fault
      const fields = { ...fieldsOf(event.tunnel), reason: message, ...(serverCode && { code: serverCode }) }
      return { level: 'warn', msg: 'tunnel refused; retrying', fields }
    }
    case 'tunnel-stopped': {
      const fields = { ...fieldsOf(event.tunnel), reason: event.message }
      return { level: 'warn', msg: 'tunnel stopped by the server', fields }
    }
    case 'connection-opened': {
      const { address, proto } = event.visitor
      return {
        level: 'debug',
        msg: 'connection opened',
        fields: { tunnel: event.tunnel.plan.name, visitor: address, proto },
      }
    }
    case 'connection-closed': {
      const { visitor, durationMs, bytesIn, bytesOut, error, requestId } = event.end
      const fields = {
        tunnel: event.tunnel.plan.name,
        visitor: visitor.address,
        duration_ms: Math.round(durationMs),
        bytes_in: bytesIn,
        bytes_out: bytesOut,
        ...(requestId && { request: requestId }),
        ...(error && { reason: error.message }),
      }
      return { level: 'debug', msg: 'connection closed', fields }
    }
    case 'service-up':
      return { level: 'info', msg: 'service answers again', fields: fieldsOf(event.tunnel) }
    case 'command':
      return {
        level: 'info',
        msg: 'command',
        fields: { name: event.name, ...(event.error && { refused: event.error }) },
      }
    case 'service-down':
    case 'request':
      return undefined
    default:
      return event satisfies never
  }
}

/** `untold` is how many failures before this one were not logged. */
function failureOf({ plan }: AgentTunnel, { error, requestId }: ConnectionEnd, unprinted: number): Line {
  const fields = {
    tunnel: plan.name,
    reason: error?.message,
    ...(requestId && { request: requestId }),
    ...(unprinted > 0 && { untold: unprinted }),
  }
  return { level: 'warn', msg: 'service does not answer', fields }
}

function locationOf({ server, session, region }: Connected): Record<string, unknown> {
  return { server: formatServer(server), session, region }
}

function fieldsOf({ plan, url, labels }: AgentTunnel): Record<string, unknown> {
  return { tunnel: plan.name, ...(labels ? { labels } : { url }), forwards_to: plan.forwardsTo }
}
