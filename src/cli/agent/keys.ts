/**
 * Keeps what is typed from showing up in the view. The terminal then passes keys on as they are, so that those which end or
 * stop a program have to be heeded here. A program in the background must leave the keyboard alone: it would be stopped.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { ReadStream } from 'node:tty'

/** Ends the program, or stops it until it is continued. */
export type KeySignal = 'SIGINT' | 'SIGQUIT' | 'SIGTSTP'

export interface Keys {
  /** From now on nothing shows up; `heard` is told of each of the keys that mean a signal. No more than once at a time. */
  hold(heard: (signal: KeySignal) => void): void
  /** Gives the keyboard back as it was. */
  release(): void
  /** Sends a signal as the terminal would. */
  send(signal: KeySignal): void
  /** Calls `run` when the program goes on after it was stopped; gives back how to stop listening. */
  onContinue(run: () => void): () => void
}

/** Ctrl+C, Ctrl+\ and Ctrl+Z, as bytes. */
const signals: ReadonlyMap<number, KeySignal> = new Map([
  [0x03, 'SIGINT'],
  [0x1c, 'SIGQUIT'],
  [0x1a, 'SIGTSTP'],
])

export interface KeysOptions {
  readonly input: Pick<ReadStream, 'isTTY' | 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>
  readonly isForeground: () => boolean
  readonly send: (signal: KeySignal) => void
}

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
      // Twice, since others may have changed what the terminal was told before.
      input.setRawMode(false)
      input.setRawMode(true)
      input.on('data', listener).resume()
    },
    release() {
      if (!listener) return
      input.off('data', listener).pause()
      listener = undefined
      // What stopped us has given the terminal to others: theirs is not ours to change.
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

/** A terminal tells the whole group: a launcher, `npx` and a shell are to end or stop with us. */
function sendToGroup(signal: KeySignal): void {
  if (process.platform === 'win32') process.emit('SIGINT')
  else process.kill(0, signal)
}

/** Whether the keyboard is ours at this moment. */
function isForeground(): boolean {
  if (process.platform === 'win32') return true
  const { group, foreground } = process.platform === 'linux' ? fromProc() : fromPs()
  return group !== undefined && group === foreground
}

interface Groups {
  readonly group?: string | undefined
  /** The group that has the terminal. */
  readonly foreground?: string | undefined
}

function fromProc(): Groups {
  try {
    // The second field is the name of the program, which may hold anything: state, parent, group, session, terminal, owner.
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
