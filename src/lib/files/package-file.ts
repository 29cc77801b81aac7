/** Finds the files of this package, from wherever its code is: sources in a clone, and built or bundled code elsewhere. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The path of a file, given from the root of the package, which is the nearest folder above with a `package.json`. */
export function packageFile(path: string, from: string = import.meta.url): string {
  let folder = dirname(fileURLToPath(from))
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) throw new Error(`no package.json above ${fileURLToPath(from)}`)
    folder = dirname(folder)
  }
  return join(folder, path)
}

/** The version of this program. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }
  return version
}
