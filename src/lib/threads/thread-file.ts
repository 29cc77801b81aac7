/** Where the code of a thread is: beside the module that starts it, as a source in a clone and built in a package. */
import { extname } from 'node:path'

/** For a new `Worker`. `name` has no extension; `from` is the `import.meta.url` of the module beside it. */
export function threadFile(name: string, from: string): URL {
  return new URL(`./${name}${extname(new URL(from).pathname)}`, from)
}
