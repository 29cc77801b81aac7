/** What the readers of keys and certificates share: strict base64, and the nose for a private key sent by mistake. */

const privateKeySign = /(BEGIN|END) [^\r\n-]{0,64}PRIVATE KEY|PuTTY-User-Key-File|b3BlbnNzaC1rZXktdjE/i

/** Whether a private key in PEM, OpenSSH, SSH2 or PuTTY form stands anywhere in `text`. */
export function holdsPrivateKey(text: string): boolean {
  return privateKeySign.test(text)
}

/** The bytes of padded base64, white space ignored; undefined for anything that would not be written the same again. */
export function decodeBase64(text: string): Buffer | undefined {
  const compact = text.replace(/[ \t\r\n]+/g, '')
  const bytes = Buffer.from(compact, 'base64')
  return compact !== '' && bytes.toString('base64') === compact ? bytes : undefined
}
