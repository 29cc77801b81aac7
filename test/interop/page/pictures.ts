/** The pictures of the dashboard: those that the suites take, and those that the docs show. */
import { join } from 'node:path'

export interface Look {
  readonly theme: 'light' | 'dark'
  readonly width: number
}

/** Both themes and two widths; the first is the default. */
export const looks = [
  { theme: 'light', width: 1280 },
  { theme: 'dark', width: 1280 },
  { theme: 'light', width: 390 },
  { theme: 'dark', width: 390 },
] as const satisfies readonly Look[]

/** Every picture that a suite takes. */
export type PictureName =
  | 'agent-bytes'
  | 'agent-first-start'
  | 'agent-frames'
  | 'agent-side-by-side'
  | 'agent-traffic'
  | 'agent-tunnels'
  | 'away'
  | 'first-start'
  | 'form-with-fault'
  | 'overview'
  | 'policy'
  | 'replay'
  | 'route'
  | 'sign-in'
  | 'traffic'

/** The pictures that the docs show, each in both themes. */
export const shown: readonly (readonly [name: PictureName, width: Look['width']])[] = [
  ['overview', 1280],
  ['route', 1280],
  ['policy', 1280],
  ['traffic', 1280],
  ['traffic', 390],
  ['replay', 1280],
]

/** The folder where a run stores them. */
export const TAKEN = join(import.meta.dirname, 'pictures')

/** Their quality in percent: text stays sharp, and all pictures in the docs are small enough for a repository. */
export const QUALITY = 80

export function pictureFile(name: PictureName, { theme, width }: Look): string {
  return `${name}-${theme}-${width}.webp`
}

/** The names of the files that the docs show. */
export function shownFiles(): string[] {
  return shown.flatMap(([name, width]) =>
    (['light', 'dark'] as const).map((theme) => pictureFile(name, { theme, width })),
  )
}
