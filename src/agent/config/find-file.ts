/** Finds an agent's configuration file: the one that was named, or those in the working folder and the user's home. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

export const LOCAL_FILE = 'postern-agent.yml'

export type Environment = Readonly<Record<string, string | undefined>>

/** From where an agent is started. */
export interface StartedFrom {
  readonly cwd: string
  readonly env: Environment
}

export interface FoundFile {
  readonly path: string
  /** Whether the user named the file, it is in the user's home, or it was found in the working folder. */
  readonly origin: 'named' | 'home' | 'found'
}

/** The files that exist, the most specific first. A named file is used alone, and is not checked for existence here. */
export function findAgentFiles(named: string | undefined, { cwd, env }: StartedFrom): FoundFile[] {
  if (named !== undefined) return [{ path: resolve(cwd, named), origin: 'named' }]
  const files: FoundFile[] = [
    { path: join(cwd, LOCAL_FILE), origin: 'found' },
    { path: homeFile(env), origin: 'home' },
  ]
  return files.filter(({ path }) => existsSync(path))
}

/** The file that `postern login` writes. */
export function homeFile(env: Environment): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'postern', 'agent.yml')
}
