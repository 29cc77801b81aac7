/** Loads the SSH library when the first client comes: it is a large one, and most servers that start never see a client. */
import { createRequire } from 'node:module'
import type ssh2 from 'ssh2'
import './patches/without-native.ts'

const require = createRequire(import.meta.url)

/** Takes some thirty milliseconds, once. */
export function loadLibrary(): typeof ssh2 {
  return require('ssh2') as typeof ssh2
}
