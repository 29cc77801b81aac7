/** One line for each event: for logs, pipes and services. */
import { UpstreamFault } from '../../agent/dial-upstream.ts'
import type { AgentEvent } from '../../agent/events.ts'
import { formatServer, type ServerAddress } from '../../agent/server-address.ts'
import type { Tunnel } from '../../agent/tunnel.ts'
import { masked } from '../../lib/log/log-mask.ts'
import { prettyLine } from '../../lib/log/log-pretty.ts'
import type { Terminal } from '../terminal.ts'
import type { Output } from './connection-flags.ts'
import type { Display } from './display.ts'

/** A service that is down is told of once in this time and not for each visitor, in milliseconds. */
const SAME_FAULT_MS = 10_000

export interface LinesOptions extends Output {
  readonly openLines: Terminal['openLines']
  readonly server: ServerAddress
  readonly now?: () => number
}

interface Line {
  readonly level: 'debug' | 'info' | 'warn'
  readonly msg: string
  readonly fields?: Record<string, unknown>
}

export function linesDisplay({ openLines, format, level: least, server, now = Date.now }: LinesOptions): Display {
  let fault = { text: '', at: Number.NEGATIVE_INFINITY }
  const shown = ({ level, msg, fields = {} }: Line): string => {
    const line = JSON.stringify({ time: new Date(now()).toISOString(), level, msg, ...masked(fields) })
    return format === 'json' ? `${line}\n` : prettyLine(line, { color: false })
  }
  const out = openLines((lost) => shown({ level: 'warn', msg: 'log lines were lost', fields: { lines: lost } }))
  const print = (line: Line): void => {
    if (line.level !== 'debug' || least === 'debug') out.write(shown(line))
  }
  return {
    event(event) {
      const line = lineOf(event, server)
      if (line) print(line)
      const error = event.type === 'connection-closed' ? event.end.error : undefined
      if (!(error instanceof UpstreamFault)) return
      if (error.message === fault.text && now() - fault.at < SAME_FAULT_MS) return
      fault = { text: error.message, at: now() }
      print({ level: 'warn', msg: 'service does not answer', fields: { reason: error.message } })
    },
    updated: ({ version, error }) =>
      print(
        error
          ? { level: 'warn', msg: 'update failed', fields: { version, reason: error.message } }
          : { level: 'info', msg: 'updated; restart to use it', fields: { version } },
      ),
    close() {},
    shown: (limitMs) => out.flush(limitMs),
  }
}

function lineOf(event: AgentEvent, server: ServerAddress): Line | undefined {
  switch (event.type) {
    case 'online': {
      const { session, region, serverVersion } = event
      const fields = { server: formatServer(server), session, region, server_version: serverVersion }
      return { level: 'info', msg: event.isResumed ? 'connected again' : 'connected', fields }
    }
    case 'offline': {
      const fields = { reason: event.fault.message, retry_ms: Math.round(event.retryMs) }
      return { level: 'warn', msg: 'not connected; trying again', fields }
    }
    case 'tunnel-online':
      return { level: 'info', msg: 'tunnel online', fields: fieldsOf(event.tunnel) }
    case 'tunnel-refused': {
      const { message, serverCode } = event.fault
      const fields = { ...fieldsOf(event.tunnel), reason: message, ...(serverCode && { code: serverCode }) }
      return { level: 'warn', msg: 'tunnel refused; trying again', fields }
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
      const { visitor, durationMs, bytesIn, bytesOut, error } = event.end
      const fields = {
        tunnel: event.tunnel.plan.name,
        visitor: visitor.address,
        duration_ms: Math.round(durationMs),
        bytes_in: bytesIn,
        bytes_out: bytesOut,
        ...(error && { reason: error.message }),
      }
      return { level: 'debug', msg: 'connection closed', fields }
    }
    case 'command':
      return {
        level: 'info',
        msg: 'command',
        fields: { name: event.name, ...(event.error && { refused: event.error }) },
      }
    case 'request':
      return undefined
    default:
      return event satisfies never
  }
}

function fieldsOf({ plan, url, labels }: Tunnel): Record<string, unknown> {
  return { tunnel: plan.name, ...(labels ? { labels } : { url }), forwards_to: plan.forwardsTo }
}
