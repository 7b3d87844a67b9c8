# The jobs of the tests: each run is one line of the file that RAN names, "JID ARGS", in one write.
RAN = File.open(ENV.fetch("RAN"), File::WRONLY | File::APPEND | File::CREAT)
RAN.sync = true

class Noted
  include Sidekiq::Worker

  def perform(*args)
    RAN.syswrite("#{jid} #{JSON.generate(args)}\n")
  end
end

# Fails for as long as it may, and is noted all the same.
class Failing < Noted
  def perform(*args)
    super
    raise "as it should"
  end
end

Sidekiq.configure_server do |config|
  config.on(:startup) { puts "sidekiq has started" }
end
