/** A contender: a tunnel program that is compared, and how to start it. */
import type { Entrance } from '../../entrance.ts'
import type { Stage } from '../../stage/stage.ts'

/** Only contenders of one class are comparable: the layer, and whether the link between server and agent is encrypted. */
export type LinkClass = 'no tunnel' | 'L4 TLS' | 'L4 plain' | 'L7 HTTP'

export interface Ground {
  readonly stage: Stage
  /** The path of a program in `needs`. */
  readonly path: (program: string) => string
  readonly sshCipher: string
  /** Options for Node in our own server and agent, such as `--cpu-prof`. */
  readonly nodeOptions: string
}

export interface Contender {
  readonly name: string
  readonly link: LinkClass
  readonly isOurs?: boolean
  /** Programs that must be installed. */
  readonly needs: readonly string[]
  /** A command that prints the version. */
  readonly version?: readonly [program: string, ...args: string[]]
  /** Starts a server and an agent on loopback, as programs of the stage; resolves when the entrance is open. */
  readonly start: (upstreamPort: number, ground: Ground) => Promise<Entrance>
}

/** A running contender. */
export interface Running extends Entrance {
  readonly contender: Contender
  /** Its processes, without their descendants, which are measured too. */
  readonly pids: () => number[]
  readonly stop: () => Promise<void>
}

/** Starts a contender; cleans up when that fails. */
export async function raise(contender: Contender, upstreamPort: number, ground: Ground): Promise<Running> {
  const { stage } = ground
  try {
    const entrance = await contender.start(upstreamPort, ground)
    return { ...entrance, contender, pids: () => stage.programs.pids, stop: () => stage.close() }
  } catch (error) {
    await stage.close()
    throw error
  }
}
