/** Keeps typed characters from being echoed into the view, and turns Ctrl+C and similar keys into signals. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { ReadStream } from 'node:tty'

/** The signals that keys can send: to end the program, or to suspend it. */
export type KeySignal = 'SIGINT' | 'SIGQUIT' | 'SIGTSTP'

export interface Keys {
  /** Stops echo, and calls `heard` for each key that means a signal. Does nothing if already holding. */
  hold(heard: (signal: KeySignal) => void): void
  /** Restores the normal mode of the keyboard. */
  release(): void
  /** Sends a signal as the terminal would. */
  send(signal: KeySignal): void
  /** Calls `run` when the program continues after being suspended; returns a function that stops listening. */
  onContinue(run: () => void): () => void
}

/** Ctrl+C, Ctrl+\ and Ctrl+Z, as bytes. */
const signals: ReadonlyMap<number, KeySignal> = new Map([
  [0x03, 'SIGINT'],
  [0x1c, 'SIGQUIT'],
  [0x1a, 'SIGTSTP'],
])

interface KeysOptions {
  readonly input: Pick<ReadStream, 'isTTY' | 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>
  readonly isForeground: () => boolean
  readonly send: (signal: KeySignal) => void
}

/**
 * In raw mode the terminal sends no signals, so the keys that end or suspend a program are handled here. Only in the
 * foreground: a background program that touched the keyboard would be suspended.
 */
export function keysOf({ input, isForeground, send }: KeysOptions): Keys {
  let listener: ((chunk: Buffer) => void) | undefined
  return {
    hold(heard) {
      if (!input.isTTY || listener || !isForeground()) return
      listener = (chunk) => {
        for (const byte of chunk) {
          const signal = signals.get(byte)
          if (signal) heard(signal)
        }
      }
      // Off first: Node skips a mode that it thinks is set, but another program may have changed it.
      input.setRawMode(false)
      input.setRawMode(true)
      input.on('data', listener).resume()
    },
    release() {
      if (!listener) return
      input.off('data', listener).pause()
      listener = undefined
      // In the background the terminal belongs to another program.
      if (isForeground()) input.setRawMode(false)
    },
    send,
    onContinue(run) {
      process.on('SIGCONT', run)
      return () => process.off('SIGCONT', run)
    },
  }
}

export function processKeys(): Keys {
  return keysOf({ input: process.stdin, isForeground, send: sendToGroup })
}

/** To the whole process group, as a terminal does: a launcher, `npx` and a shell end or stop with us. */
function sendToGroup(signal: KeySignal): void {
  if (process.platform === 'win32') process.emit('SIGINT')
  else process.kill(0, signal)
}

/** Whether this program is in the foreground of its terminal. */
function isForeground(): boolean {
  if (process.platform === 'win32') return true
  const { group, foreground } = process.platform === 'linux' ? fromProc() : fromPs()
  return group !== undefined && group === foreground
}

interface Groups {
  readonly group?: string | undefined
  /** The process group in the foreground of the terminal. */
  readonly foreground?: string | undefined
}

function fromProc(): Groups {
  try {
    // These follow the program's name in parentheses, which may contain anything: state, parent, group, session, terminal, foreground group.
    const text = readFileSync('/proc/self/stat', 'latin1')
    const [, , , group, , , foreground] = text.slice(text.lastIndexOf(')')).split(' ')
    return { group, foreground }
  } catch {
    return {}
  }
}

function fromPs(): Groups {
  const { stdout } = spawnSync('ps', ['-o', 'pgid=,tpgid=', '-p', String(process.pid)], { encoding: 'utf8' })
  const [group, foreground] = (stdout ?? '').trim().split(/\s+/)
  return { group, foreground }
}
