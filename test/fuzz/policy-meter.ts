/** Compares what requests to hostile policies cost with what their meters say: each runs in a process of its own. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Answer, Ask, Measured } from './policy-meter-process.ts'

/** How far the CPU time of a request may be from the straight line. */
export const FACTOR = 4

/** A process that has measured so many policies gives way to a fresh one, so that none runs in the garbage of others. */
const POLICIES_A_PROCESS = 50

/** Requests that take less are not judged, in microseconds: of those, much is for what has no price. */
const JUDGED_MICROS = 100

/** What costs little enough to show the fixed cost, and much enough to show the slope, in steps. */
const FEW_STEPS = 20_000
const MANY_STEPS = 200_000

export interface Line {
  readonly fixedMicros: number
  readonly microsAStep: number
}

export interface Finding {
  readonly measured: Measured
  readonly ratio: number
  /** The action that alone is farthest from the line, if that is one. */
  readonly cause: string
}

export class MeterFuzz {
  #process: ChildProcess | undefined
  #asked = 0

  /** What a policy costs; undefined when it is refused. */
  async measure(ask: Ask): Promise<Measured | undefined> {
    if (this.#asked++ % POLICIES_A_PROCESS === 0) this.close()
    this.#process ??= fork(fileURLToPath(import.meta.resolve('./policy-meter-process.ts')), { execArgv: [] })
    this.#process.send(ask)
    const [answer] = (await once(this.#process, 'message')) as [Answer]
    return 'refused' in answer ? undefined : answer
  }

  close(): void {
    this.#process?.kill()
    this.#process = undefined
  }

  /** The action of an outlier that is farthest from the line by itself, measured in a process that has done nothing else. */
  async causeOf({ seed, policy }: Measured, line: Line): Promise<string> {
    this.close()
    const parts = (['inbound', 'outbound'] as const).flatMap((direction) =>
      policy[direction].flatMap(({ actions }, rule) => {
        const different = new Map(actions.map((action, i) => [JSON.stringify(action), i]))
        return [...different].map(([text, action]) => ({ text, only: [direction, rule, action] as const }))
      }),
    )
    let worst = { ratio: 0, text: '' }
    for (const { text, only } of parts) {
      const measured = await this.measure({ seed, only })
      const ratio = measured ? ratioTo(line, measured) : 0
      if (measured && ratio > worst.ratio) {
        const rule = policy[only[0]][only[1]]
        worst = {
          ratio,
          text: `${Math.round(measured.micros)} µs, ${Math.round(measured.steps)} steps: ${text} on ${rule?.expressions?.join(' && ')}`,
        }
      }
    }
    return `${worst.ratio.toFixed(1)} alone, ${worst.text}`
  }
}

/** How much more a request costs than its meter says. */
export function ratioTo({ fixedMicros, microsAStep }: Line, { micros, steps }: Measured): number {
  return micros / (fixedMicros + microsAStep * steps)
}

/** The line through the middle of all: medians, which a few outliers do not move. */
export function fitLine(all: readonly Measured[]): Line {
  // Of those that were refused, nobody knows how much more there was to do.
  const done = all.filter(({ isSpent }) => !isSpent)
  const microsAStep = median(done.filter(({ steps }) => steps > MANY_STEPS).map(({ micros, steps }) => micros / steps))
  const rest = done.filter(({ steps }) => steps < FEW_STEPS).map(({ micros, steps }) => micros - microsAStep * steps)
  return { fixedMicros: Math.max(1, median(rest)), microsAStep }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0
}

/** Requests that cost more than the line says by more than the factor. */
export function outliers(all: readonly Measured[], line: Line): Measured[] {
  return all.filter((each) => each.micros >= JUDGED_MICROS && ratioTo(line, each) > FACTOR)
}

/** Requests that are charged for more than they cost; those that were refused may have been stopped before the work. */
export function overcharged(all: readonly Measured[], line: Line): Measured[] {
  const isJudged = ({ micros, isSpent }: Measured): boolean => micros >= JUDGED_MICROS && !isSpent
  return all.filter((each) => isJudged(each) && ratioTo(line, each) < 1 / FACTOR)
}
