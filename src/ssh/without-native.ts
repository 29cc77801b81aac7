/**
 * Keeps the library from loading the native ciphers that it builds, where it can, when it is installed.
 *
 * `quick-link.ts` fits its ciphers in JavaScript, which are those of Node: the native ones would write past the end of the
 * packets that are made there. To be imported before the library, which looks for them as soon as it is loaded.
 */
import { createRequire, Module } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)

/** Has whoever requires the native part of the library in `folder` find it empty. */
export function withoutNative(folder: string): void {
  const file = join(folder, 'lib/protocol/crypto/build/Release/sshcrypto.node')
  require.cache[file] = Object.assign(new Module(file), { filename: file, loaded: true, exports: {} })
}

withoutNative(dirname(require.resolve('ssh2/package.json')))
