//! A standby as the server sees one: it follows the log, and says which rows its readers need.

use std::io::{Read, Write};
use std::net::TcpStream;

/// It is gone with its connection.
pub struct Replica(TcpStream);

impl Replica {
    /// Follows the server of a URL from `from` on, and asks it to keep what transaction `needs` can see.
    pub fn follow(url: &str, name: &str, from: &str, needs: u64) -> Self {
        let (_, place) = url.split_once('@').unwrap();
        let (place, _) = place.split_once('/').unwrap();
        let mut replica = Self(TcpStream::connect(place).unwrap());
        let mut start = 196_608_u32.to_be_bytes().to_vec();
        for text in [
            "user",
            "postgres",
            "replication",
            "true",
            "application_name",
            name,
            "",
        ] {
            start.extend(text.bytes());
            start.push(0);
        }
        replica.send(None, &start);
        replica.until(b'Z');
        let query = format!("START_REPLICATION PHYSICAL {from}\0");
        replica.send(Some(b'Q'), query.as_bytes());
        replica.until(b'W');
        replica.feed_back(needs);
        replica
    }

    fn feed_back(&mut self, needs: u64) {
        let mut feedback = vec![b'h'];
        feedback.extend(0_u64.to_be_bytes());
        let (epoch, xmin) = (needs >> 32, needs & 0xffff_ffff);
        for number in [xmin, epoch, 0, 0] {
            feedback.extend(u32::try_from(number).unwrap().to_be_bytes());
        }
        self.send(Some(b'd'), &feedback);
    }

    fn send(&mut self, what: Option<u8>, content: &[u8]) {
        let length = u32::try_from(content.len() + 4).unwrap();
        let mut message: Vec<u8> = what.into_iter().collect();
        message.extend(length.to_be_bytes());
        message.extend(content);
        self.0.write_all(&message).unwrap();
    }

    /// Reads messages up to one of this kind.
    fn until(&mut self, wanted: u8) {
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes(head[1..].try_into().unwrap());
            let mut content = vec![0; usize::try_from(length).unwrap() - 4];
            self.0.read_exact(&mut content).unwrap();
            let told = String::from_utf8_lossy(&content);
            assert!(head[0] != b'E', "{told}");
            if head[0] == wanted {
                return;
            }
        }
    }
}
