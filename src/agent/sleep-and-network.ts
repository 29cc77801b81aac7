/** Notices what silently breaks connections: the machine slept, or its network changed. */
import { networkInterfaces } from 'node:os'
import type { Timers } from './timers.ts'

/** How often to check, in milliseconds. */
const LOOK_MS = 5000

/** A check that is late by more than this means that the machine slept, in milliseconds; a busy process is never that late. */
const SLEPT_MS = 10_000

export type SleepOrNetworkChange = 'slept' | 'network'

interface WatchWorld {
  readonly timers: Timers
  /** The addresses of this machine, as text that can be compared. */
  readonly addresses?: () => string
  readonly onChange: (change: SleepOrNetworkChange) => void
}

/** Returns a function that stops watching. */
export function watchSleepAndNetwork({ timers, addresses = machineAddresses, onChange }: WatchWorld): () => void {
  let known = addresses()
  let cancel = (): void => {}
  const look = (due: number): void => {
    const isLate = timers.now() - due > SLEPT_MS
    const found = addresses()
    const isMoved = found !== known
    known = found
    again()
    if (isLate) onChange('slept')
    else if (isMoved) onChange('network')
  }
  const again = (): void => {
    const due = timers.now() + LOOK_MS
    cancel = timers.after(LOOK_MS, () => look(due))
  }
  again()
  return () => cancel()
}

function machineAddresses(): string {
  const found = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return found
    .filter(({ internal }) => !internal)
    .map(({ address }) => address)
    .toSorted()
    .join(' ')
}
