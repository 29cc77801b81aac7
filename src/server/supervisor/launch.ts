/** Starts a child: the same program with another command, connected by a channel and by pipes for its output. */
import { spawn } from 'node:child_process'
import type { ServerHandle } from '../../lib/net/early-listener.ts'
import type { ChildRole, FromChild, ToChild } from './process-messages.ts'
import { passLines } from './whole-lines.ts'

/** A child as the supervisor sees it. */
export interface Child {
  readonly pid: number | undefined
  /** Sends a message; does nothing once the child is gone. */
  send(message: ToChild, handle?: ServerHandle): void
  /** Ends it at once. */
  kill(): void
}

/** How a child ended. */
export interface ChildEnd {
  readonly code: number | null
  readonly signal: string | null
  /** The error that ended it, if it printed one. */
  readonly said?: string
}

interface ChildEvents {
  message(message: FromChild): void
  /** The last call. */
  ended(end: ChildEnd): void
}

export type Launch = (role: ChildRole, events: ChildEvents) => Child

interface LaunchOptions {
  /** The arguments of Node that run a child of this role. */
  readonly args: (role: ChildRole) => readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Take whole lines. */
  readonly out: (lines: string) => void
  readonly err: (lines: string) => void
}

/** How long the last output and messages of a child may take to arrive after its end, in milliseconds. */
const LAST_WORDS_MS = 1000

/** How much of a child's output is kept to report why it ended, in characters. */
const MAX_SAID_CHARS = 4000

export function launcher({ args, env, out, err }: LaunchOptions): Launch {
  return (role, events) => {
    const child = spawn(process.execPath, args(role), {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced',
      env: childEnv(env, role),
    })
    if (child.stdout) passLines(child.stdout, out)
    let said = ''
    if (child.stderr) {
      passLines(child.stderr, (lines) => {
        said = (said + lines).slice(-MAX_SAID_CHARS)
        err(lines)
      })
    }
    let isOver = false
    const end = (how: ChildEnd): void => {
      if (isOver) return
      isOver = true
      events.ended({ ...how, said: errorIn(said) })
    }
    // Both ends are ours; `SUPERVISION` tells whether they are compatible.
    child.on('message', (received) => isOver || events.message(received as FromChild))
    child.on('error', (error) => {
      err(`${error.message}\n`)
      if (child.pid === undefined) end({ code: null, signal: null })
    })
    // `close` comes when all output and messages have arrived; but a process that the child started may keep its pipes open.
    child.once('exit', (code, signal) => setTimeout(() => end({ code, signal }), LAST_WORDS_MS).unref())
    child.once('close', (code: number | null, signal: string | null) => end({ code, signal }))
    return {
      pid: child.pid,
      send(sent, handle) {
        // An error means that the child is gone, and `ended` follows.
        // The types allow servers and sockets; Node also sends the handles inside them.
        if (child.connected) child.send(sent, handle as undefined, undefined, () => {})
      },
      kill: () => void child.kill('SIGKILL'),
    }
  }
}

/** The environment of a child. Settings come by message, workers must not know the database, and only we talk to systemd. */
function childEnv(env: LaunchOptions['env'], role: ChildRole): NodeJS.ProcessEnv {
  const secret = role === 'worker' ? /^(POSTERN_|PG|NOTIFY_SOCKET$)/ : /^(POSTERN_|NOTIFY_SOCKET$)/
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secret.test(name)))
}

/** The last line that names an error, as Node prints it for a program that it cannot run. */
function errorIn(printed: string): string {
  return printed.match(/^\w*Error\b.*$/gm)?.at(-1) ?? ''
}
