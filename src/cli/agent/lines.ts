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
  readonly fields: Readonly<Record<string, unknown>>
}

export function linesDisplay({ openLines, format, level: least, now = Date.now }: LinesOptions): Display {
  const failures = { since: Number.NEGATIVE_INFINITY, printed: 0, unprinted: 0 }
  const formatLine = ({ level, msg, fields }: Line): string => {
    const line = JSON.stringify({ time: new Date(now()).toISOString(), level, msg, ...maskSecrets(fields) })
    return format === 'json' ? `${line}\n` : prettyLine(line, { color: false })
  }
  const out = openLines((lost) => formatLine(warning('log lines were lost', { lines: lost })))
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
    updated({ version, error }) {
      if (error) print(warning('update failed', { version, reason: error.message }))
      else print(info('updated; restart to use it', { version }))
    },
    inspecting(inspector) {
      if ('url' in inspector) print(info('inspector online', { url: inspector.url }))
      else print(warning('inspector could not start', { reason: inspector.reason }))
    },
    reloaded: print,
    close() {},
    shown: (limitMs) => out.flush(limitMs),
  }
}

function lineOf(event: AgentEvent): Line | undefined {
  switch (event.type) {
    case 'online':
      return info(event.isResumed ? 'connected again' : 'connected', connectionFields(event))
    case 'moved':
      return info('moved to another connection', connectionFields(event))
    case 'offline': {
      const { fault, retryMs } = event
      return warning('not connected; retrying', { reason: fault.message, retry_ms: Math.round(retryMs) })
    }
    case 'second-online':
      return info('connected to a second node', locationOf(event))
    case 'second-offline':
      return info('not connected to a second node', { reason: event.fault.message })
    case 'standby':
      return info('standby ready at another node', { server: formatServer(event.server), region: event.region })
    case 'tunnel-online':
      return info('tunnel online', fieldsOf(event.tunnel))
    case 'tunnel-refused': {
      const { message, serverCode } = event.fault
      const fields = { ...fieldsOf(event.tunnel), reason: message, ...(serverCode && { code: serverCode }) }
      return warning('tunnel refused; retrying', fields)
    }
    case 'tunnel-stopped':
      return warning('tunnel stopped by the server', { ...fieldsOf(event.tunnel), reason: event.message })
    case 'connection-opened': {
      const { address, proto } = event.visitor
      const fields = { tunnel: event.tunnel.plan.name, visitor: address, proto }
      return { level: 'debug', msg: 'connection opened', fields }
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
      return info('service answers again', fieldsOf(event.tunnel))
    case 'command':
      return info('command', { name: event.name, ...(event.error && { refused: event.error }) })
    case 'service-down':
    case 'request':
      return undefined
    default:
      return event satisfies never
  }
}

function info(msg: string, fields: Line['fields']): Line {
  return { level: 'info', msg, fields }
}

function warning(msg: string, fields: Line['fields']): Line {
  return { level: 'warn', msg, fields }
}

/** `untold` is how many failures before this one were not logged. */
function failureOf({ plan }: AgentTunnel, { error, requestId }: ConnectionEnd, unprinted: number): Line {
  const fields = {
    tunnel: plan.name,
    reason: error?.message,
    ...(requestId && { request: requestId }),
    ...(unprinted > 0 && { untold: unprinted }),
  }
  return warning('service does not answer', fields)
}

function connectionFields(event: Connected & { readonly serverVersion: string }): Record<string, unknown> {
  return { ...locationOf(event), server_version: event.serverVersion }
}

function locationOf({ server, session, region }: Connected): Record<string, unknown> {
  return { server: formatServer(server), session, region }
}

function fieldsOf({ plan, url, labels }: AgentTunnel): Record<string, unknown> {
  return { tunnel: plan.name, ...(labels ? { labels } : { url }), forwards_to: plan.forwardsTo }
}
