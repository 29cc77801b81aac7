/** The live view of an agent on a terminal. */
import { styleText } from 'node:util'
import type { Agent } from '../../agent/agent.ts'
import type { AgentConfig } from '../../agent/config/connection.ts'
import { formatServer, type ServerAddress } from '../../agent/server-address.ts'
import type { AgentTunnel } from '../../agent/tunnel.ts'
import { printable } from '../../lib/text/printable.ts'
import type { Display } from './display.ts'
import type { KeySignal } from './keys.ts'
import { Canvas, type Screen } from './screen.ts'

/** Shortest and longest time between two frames, in milliseconds. */
const QUICK_MS = 100
const SLOW_MS = 1000

/** How much of a tunnel's name is shown in the list of requests, in characters. */
const NAME_WIDTH = 16

interface ViewOptions {
  readonly agent: Agent
  readonly config: Pick<AgentConfig, 'server'>
  readonly version: string
  readonly screen: Screen
  readonly env: Readonly<Record<string, string | undefined>>
  readonly now?: () => number
}

/** The state of the view, from the agent's events; `server` is the one to connect to. */
function beginning(server: ServerAddress) {
  return {
    status: 'connecting' as 'connecting' | 'online' | 'offline',
    reason: '',
    retryAt: 0,
    /** Where it is connected, or trying to connect. */
    server,
    session: '',
    /** The session at a second node; `''` without one. */
    secondSession: '',
    region: '',
    serverVersion: '',
    /** The URL of the inspector; `''` without one. */
    inspector: '',
    /** The latest message for the user. */
    note: '',
    /** Services that do not answer, and why. */
    down: new Map<AgentTunnel, string>(),
  }
}

type ViewState = ReturnType<typeof beginning>

type Paint = (style: Parameters<typeof styleText>[0], text: string) => string

export function viewDisplay({ agent, config, version, screen, env, now = Date.now }: ViewOptions): Display {
  const canvas = new Canvas(screen)
  const color = !env.NO_COLOR
  const paint: Paint = (style, text) => (color ? styleText(style, text, { validateStream: false }) : text)
  const state = beginning(config.server)
  const draw = (): void => canvas.draw(viewLines({ agent, version, state, rows: screen.rows, paint, now: now() }))
  let isDue = false
  const soon = (): void => {
    if (isDue) return
    isDue = true
    setTimeout(() => {
      isDue = false
      draw()
    }, QUICK_MS).unref()
  }
  const timer = setInterval(draw, SLOW_MS)
  const stopListening = screen.onResize(() => {
    canvas.forget()
    draw()
  })
  // Runs however the process ends, so that the terminal is left as it was.
  const { keys } = screen
  const restore = (): void => {
    canvas.close()
    keys.release()
  }
  const heard = (signal: KeySignal): void => {
    // Other programs use the terminal while this one is stopped.
    if (signal === 'SIGTSTP') restore()
    keys.send(signal)
  }
  const stopContinuing = keys.onContinue(() => {
    restore()
    canvas.reopen()
    keys.hold(heard)
    draw()
  })
  process.once('exit', restore)
  keys.hold(heard)
  draw()
  return {
    event(event) {
      if (event.type === 'online' || event.type === 'moved') {
        const { server, session, region, serverVersion } = event
        Object.assign(state, { status: 'online', server, session, region, serverVersion })
      } else if (event.type === 'offline') {
        Object.assign(state, { status: 'offline', reason: event.fault.message, retryAt: now() + event.retryMs })
      } else if (event.type === 'second-online') state.secondSession = event.session
      else if (event.type === 'second-offline') state.secondSession = ''
      else if (event.type === 'tunnel-refused') state.note = `${event.tunnel.url}: ${event.fault.message}`
      else if (event.type === 'tunnel-stopped') state.note = `the server stopped ${event.tunnel.url}: ${event.message}`
      else if (event.type === 'command') state.note = `command ${event.name}${event.error && `: ${event.error}`}`
      else if (event.type === 'service-down') state.down.set(event.tunnel, event.reason)
      else if (event.type === 'service-up') state.down.delete(event.tunnel)
      if (event.type === 'tunnel-stopped') state.down.delete(event.tunnel)
      soon()
    },
    inspecting(inspector) {
      if ('url' in inspector) state.inspector = inspector.url
      else state.note = `inspector could not start: ${inspector.reason}`
      soon()
    },
    reloaded({ msg }) {
      state.note = msg
      soon()
    },
    updated({ version: updated, error }) {
      state.note = error ? `update to ${updated} failed: ${error.message}` : `updated to ${updated}; restart to use it`
      soon()
    },
    close() {
      clearInterval(timer)
      stopListening()
      stopContinuing()
      process.off('exit', restore)
      restore()
    },
    // Nothing to wait for: the view is gone once it is closed.
    shown: async () => {},
  }
}

interface Frame {
  readonly agent: Pick<Agent, 'tunnels' | 'latencyMs' | 'figures'>
  readonly version: string
  readonly state: ViewState
  readonly rows: number
  readonly paint: Paint
  readonly now: number
}

/** The lines of the view; control characters in text from elsewhere are made harmless. */
export function viewLines({ agent, version, state, rows, paint, now }: Frame): string[] {
  const { figures, latencyMs, tunnels } = agent
  const row = (name: string, value: string): string => `${name.padEnd(14)}${value}`
  const lines = [
    `${paint('bold', 'Postern')} ${paint('dim', '(Ctrl+C to quit)')}`,
    '',
    row('Session', status(state, { paint, now })),
    row('Server', printable(serverOf(state))),
    row('Latency', latencyMs === undefined ? '' : milliseconds(latencyMs)),
    row('Version', version),
    ...(state.inspector === '' ? [] : [row('Inspector', state.inspector)]),
    ...[...tunnels].map((tunnel, i) => row(i === 0 ? 'Forwarding' : '', forwarding(tunnel, paint))),
    row('Connections', connections(figures)),
  ]
  // Two tunnels may have the same service, and then the same message.
  const notes = [...new Set([...state.down.values(), state.note])].filter((note) => note !== '')
  if (notes.length > 0) lines.push('', ...notes.map((note) => paint('yellow', printable(note))))
  const room = rows - lines.length - 3
  if (figures.recent.length > 0 && room > 0) {
    lines.push('', paint('bold', 'Requests'))
    const shown = figures.recent.slice(0, room)
    const width = Math.min(NAME_WIDTH, Math.max(...shown.map(({ tunnel }) => tunnel.length)))
    for (const { time, tunnel, method, path, status, durationMs } of shown) {
      const took = durationMs === undefined ? '' : milliseconds(durationMs)
      const name = printable(tunnel).slice(0, width).padEnd(width)
      const answer = `${colourStatus(status, paint)} ${took.padStart(9)}`
      lines.push(`${paint('dim', timeOfDay(time))}  ${name}  ${answer}  ${method.padEnd(7)} ${printable(path)}`)
    }
  }
  return lines
}

function status(
  { status, session, secondSession, reason, retryAt }: ViewState,
  { paint, now }: { paint: Paint; now: number },
): string {
  const sessions = secondSession === '' ? session : `${session}, ${secondSession}`
  if (status === 'online') return `${paint('green', 'online')} ${paint('dim', printable(sessions))}`
  if (status === 'connecting') return paint('yellow', 'connecting')
  const left = Math.max(0, Math.ceil((retryAt - now) / 1000))
  return `${paint('red', 'offline')} ${printable(reason)}; retrying in ${left} s`
}

function serverOf({ server, region, serverVersion }: ViewState): string {
  const more = [region && `region ${region}`, serverVersion && `version ${serverVersion}`].filter(Boolean)
  return [formatServer(server), ...more].join(', ')
}

function forwarding({ url, labels, plan, isOnline }: AgentTunnel, paint: Paint): string {
  const shown = labels ? Object.entries(labels).map(([name, value]) => `${name}=${value}`) : [url]
  const from = printable(shown.join(' ')) || '…'
  return `${isOnline ? paint('cyan', from) : paint('dim', from)} -> ${printable(plan.forwardsTo)}`
}

function connections(figures: Frame['agent']['figures']): string {
  const [p50, p90] = [figures.percentile(0.5), figures.percentile(0.9)]
  const times = p50 === undefined || p90 === undefined ? [] : [`p50 ${milliseconds(p50)}`, `p90 ${milliseconds(p90)}`]
  return [`${figures.total} total`, `${figures.open} open`, ...times].join(', ')
}

function colourStatus(status: number | undefined, paint: Paint): string {
  if (status === undefined) return '...'
  return paint(status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green', String(status))
}

/** In the local time zone. */
function timeOfDay(ms: number): string {
  return new Date(ms).toTimeString().slice(0, 8)
}

function milliseconds(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`
}
