/** The latest frames of an exchange, and how many are missing. */
import type { ListedRow } from '../all-rows.ts'

/** As many as the agent keeps. */
const MAX_FRAMES = 1000

export interface FrameLog {
  /** The oldest first. */
  readonly frames: readonly ListedRow[]
  /** How many are missing, before or between those kept. */
  readonly missed: number
}

export const noFrames: FrameLog = { frames: [], missed: 0 }

interface MoreFrames {
  readonly frames?: readonly ListedRow[]
  readonly missed?: number
}

export function addFrames(log: FrameLog, { frames = [], missed = 0 }: MoreFrames): FrameLog {
  const all = [...log.frames, ...frames]
  const kept = all.slice(-MAX_FRAMES)
  return { frames: kept, missed: log.missed + missed + all.length - kept.length }
}
