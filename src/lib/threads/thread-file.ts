/** Finds the file of a thread: beside the module that starts it, `.ts` in a clone and `.js` in a built package. */
import { extname } from 'node:path'

/** The URL for a new `Worker`. `name` has no extension; `from` is the `import.meta.url` of the module beside it. */
export function threadFile(name: string, from: string): URL {
  return new URL(`./${name}${extname(new URL(from).pathname)}`, from)
}
