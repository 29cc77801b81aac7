/** Keeps the library from loading the native ciphers that it may have built when it was installed. */
import { createRequire, Module } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)

/**
 * Makes `require` find an empty module in place of the native part of the library in `folder`. `fast-ciphers.ts` is made for the
 * library's JavaScript ciphers, which use Node's crypto: native ciphers would write past the end of the packets that are made for
 * them.
 */
export function withoutNative(folder: string): void {
  const file = join(folder, 'lib/protocol/crypto/build/Release/sshcrypto.node')
  require.cache[file] = Object.assign(new Module(file), { filename: file, loaded: true, exports: {} })
}

// Import this file before the library, which looks for native ciphers as soon as it is loaded.
withoutNative(dirname(require.resolve('ssh2/package.json')))
