/** Shared by the readers of keys and certificates: strict base64, and detecting a private key sent by mistake. */

const privateKeySign = /(BEGIN|END) [^\r\n-]{0,64}PRIVATE KEY|PuTTY-User-Key-File|b3BlbnNzaC1rZXktdjE/i

/** Whether `text` contains a private key in PEM, OpenSSH, SSH2 or PuTTY form. */
export function holdsPrivateKey(text: string): boolean {
  return privateKeySign.test(text)
}

/** The bytes of padded base64, ignoring white space; undefined for anything but the canonical form. */
export function decodeBase64(text: string): Buffer | undefined {
  const compact = text.replace(/[ \t\r\n]+/g, '')
  const bytes = Buffer.from(compact, 'base64')
  return compact !== '' && bytes.toString('base64') === compact ? bytes : undefined
}
